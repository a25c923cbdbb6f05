"""Positions: sinusoids, log buckets, rows of tables by distance."""

import keras
import numpy as np
from keras import ops

from tfnlp.functional.shapes import check_sizes

# Limit of a table of distances, however few buckets they share: no text is as long.
LONGEST_DISTANCE = 2**20


def sinusoids(positions, dim, max_wavelength=10000.0, interleaved=True):
    """Compute sinusoids of positions at dim / 2 wavelengths (Vaswani et al. 2017, section 3.5).

    Args:
        positions: (L,), numbers of any sign.
        dim: D, even.
        max_wavelength: the longest wavelength, in multiples of 2 pi.
        interleaved: sin, cos, sin, cos ... as in the paper; else all sines, then all cosines,
            as Transformer-XL and XLNet have them.

    Returns:
        (L, D) float32.

    Raises:
        ValueError: if `dim` is odd.
    """
    sines, cosines = sines_and_cosines(positions, dim, max_wavelength)
    if not interleaved:
        return ops.concatenate([sines, cosines], axis=-1)
    return ops.reshape(ops.stack([sines, cosines], axis=-1), (-1, dim))


def sines_and_cosines(positions, dim, max_wavelength=10000.0):
    """Compute the sines and the cosines of `sinusoids`, each (L, D / 2) float32."""
    _check_even(dim)
    # Rounded where the references round: at position 500 the last bit shows.
    exponents = np.arange(0, dim, 2, dtype="float32") / np.float32(dim)
    wavelengths = np.power(float(max_wavelength), exponents.astype("float64"))
    frequencies = np.float32(1) / wavelengths.astype("float32")
    angles = ops.cast(positions, "float32")[:, None] * frequencies
    return ops.sin(angles), ops.cos(angles)


def sinusoid_table(length, dim, max_wavelength=10000.0, interleaved=True):
    """Compute `sinusoids` of positions 0 to length - 1 in double precision, a NumPy array.

    At position 500 the angles of `sinusoids` are off by the rounding of float32, 3e-5.
    """
    _check_even(dim)
    wavelengths = np.power(float(max_wavelength), np.arange(0, dim, 2) / dim)
    angles = np.arange(length)[:, None] / wavelengths
    parts = np.sin(angles), np.cos(angles)
    table = np.stack(parts, axis=-1) if interleaved else np.concatenate(parts, axis=-1)
    return table.reshape(length, dim).astype("float32")


def log_buckets(distances, num_buckets, max_distance):
    """Map signed distances beyond num_buckets / 2 to a log scale; nearer ones stay unchanged.

    As in the code release of DeBERTa v2 and v3 (`make_log_bucket_position`; He et al. 2021):
    with m = num_buckets / 2, a distance d beyond m gets
    `sign(d) * (m + ceil(log(|d| / m) / log((max_distance - 1) / m) * (m - 1)))`.

    Args:
        distances: integers of any shape, a NumPy array.
        num_buckets: the number of buckets on either side.
        max_distance: the distance (plus one) whose bucket is the last.

    Returns:
        A NumPy array of int32, shaped as `distances`.
    """
    middle = num_buckets // 2
    near = np.abs(distances) <= middle
    # In float32, as the reference: the ceiling shows every rounding.
    magnitude = np.where(near, middle, np.abs(distances)).astype("float32")
    logs = np.log(magnitude / np.float32(middle))
    logs = logs / np.log(np.float32((max_distance - 1) / middle))
    far = np.sign(distances) * (np.ceil(logs * np.float32(middle - 1)) + middle)
    return np.where(near, distances, far).astype("int32")


def distance_rows(max_distance, num_buckets=None):
    """Return the row of a relative table for each distance from -R to R, clipped beyond.

    He et al. 2020, 'DeBERTa', eq. 3: row d + k, where d is the query's position less the
    key's, kept between -k and k - 1; with buckets, the bucket of d in place of d, and k the
    number of buckets.

    Args:
        max_distance: k, or with buckets the distance (plus one) of the last.
        num_buckets: buckets on either side; None for none.

    Returns:
        (2 R + 1,) int32, below `2 * (num_buckets or max_distance)`. R is `max_distance`, and
        more for an odd number of buckets.

    Raises:
        ValueError: for a distance below 1, and too few or too many buckets.
    """
    check_distances(max_distance, num_buckets)
    reach = _farthest_distance(max_distance, num_buckets)
    distances = np.arange(-reach, reach + 1)
    span = num_buckets or max_distance
    if num_buckets:
        distances = log_buckets(distances, num_buckets, max_distance)
    return np.clip(distances + span, 0, 2 * span - 1).astype("int32")


def _farthest_distance(max_distance, num_buckets):
    """Return a distance from which on all share a row.

    An odd number of buckets 2 m + 1 has a row more than `max_distance` reaches on the negative
    side: that of distances beyond m ((max_distance - 1) / m)^(m / (m - 1)).
    """
    middle = (num_buckets or 0) // 2
    if middle < 2 or num_buckets % 2 == 0:
        return max_distance
    last = middle * ((max_distance - 1) / middle) ** (middle / (middle - 1))
    return min(int(last) + 2, LONGEST_DISTANCE)


def offset_rows(rows_by_distance, length, source_length):
    """Return the row of a relative table for each offset of a key from a query.

    Args:
        rows_by_distance: as `distance_rows` gives them.
        length: T, the queries, which are the last T of the keys.
        source_length: S.

    Returns:
        (T + S - 1,), the furthest behind first; a NumPy array if both lengths are known.
    """
    is_known = isinstance(length, int) and isinstance(source_length, int)
    xp = np if is_known else ops
    distances = source_length - 1 - xp.arange(length + source_length - 1)
    reach = len(rows_by_distance) // 2
    distances = xp.clip(distances, -reach, reach)
    return xp.take(rows_by_distance, distances + reach, axis=0)


def rows_in_use(table, rows_by_distance, length, source_length, training=False):
    """Return the part of a table (R, D) that is read, and the rows of `offset_rows` within it.

    That is where the lengths are known, and in training. With unknown lengths at inference it is
    all of the table, so that an export folds its projections into constants.
    """
    rows = offset_rows(rows_by_distance, length, source_length)
    is_known = isinstance(rows, np.ndarray)
    if not (is_known or training):
        return table, rows
    first, last = rows[-1], rows[0]
    shape = (last + 1 - first, table.shape[-1])
    if is_known:
        first, shape = int(first), tuple(map(int, shape))
    return ops.slice(table, (first, 0), shape), rows - first


def check_length(name, inputs, max_length):
    """Return the input; raise a ValueError if it is longer than a table of positions.

    A CPU's gather raises for rows that a table lacks, a GPU's gives zeros. Where the length shows
    at run time alone TensorFlow's own error names it then, which a conversion to TFLite leaves
    out, and XLA too; other backends know every length.

    Args:
        name: of the input.
        inputs: (B, L, ...).
        max_length: the rows of the table; None for no limit.

    Returns:
        `inputs`, to be read only where the length is right: a gather might fail first.
    """
    length = inputs.shape[1]
    if max_length is None:
        return inputs
    only = f"but there are only max_length={max_length} positions; cut the input."
    if length is not None:
        if length > max_length:
            raise ValueError(f"{name} has length {length}, {only}")
    elif keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        message = f"{name} is too long, {only}"
        checked = tf.debugging.assert_less_equal(tf.shape(inputs)[1], max_length, message)
        with tf.control_dependencies([checked]):
            return tf.identity(inputs)
    return inputs


def check_distances(max_distance, num_buckets):
    """Raise a ValueError for an invalid maximum distance or number of buckets."""
    check_sizes(max_distance=max_distance)
    if num_buckets is not None and not 2 <= num_buckets < 2 * (max_distance - 1):
        raise ValueError(
            f"num_buckets={num_buckets} must be at least 2 and below "
            f"2 * (max_distance - 1) = {2 * (max_distance - 1)}, or None."
        )


def _check_even(dim):
    if dim % 2:
        raise ValueError(f"dim={dim} must be even, for as many sines as cosines.")
