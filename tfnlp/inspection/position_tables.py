"""Position encodings of a model: the rows that a text reads, and their similarity."""

import dataclasses

import numpy as np
from keras import ops

from tfnlp.functional.positions import distance_rows, sinusoid_table
from tfnlp.functional.relative_positions import relative_sinusoids
from tfnlp.layers import (
    LearnedPositionEncoding,
    RelativeAttention,
    RelativePositionTable,
    SinusoidalPositionEncoding,
    TextEmbedding,
)

# Most positions, or distances on either side, that are shown.
MOST_POSITIONS, FARTHEST = 64, 32


@dataclasses.dataclass(frozen=True)
class PositionTable:
    """Rows of a position encoding.

    Args:
        name: of the encoding, in words.
        labels: the position of each row, or the distance from a key to its query; strings.
        rows: (P, D) float32.
    """

    name: str
    labels: list
    rows: np.ndarray

    @property
    def similarity(self):
        """Cosines of the rows, (P, P); 0 for a row of zeros."""
        norms = np.linalg.norm(self.rows, axis=1, keepdims=True)
        unit = self.rows / np.where(norms == 0, 1, norms)
        return unit @ unit.T


def position_tables(model, length):
    """Return the position encodings that a text of `length` tokens reads, a list.

    Args:
        model: from `build_model`.
        length: the number of tokens; at most 64 positions and distances up to 32 are returned.

    Returns:
        A `PositionTable` for each kind of encoding; none where a model reads no positions.
    """
    tables = {}
    for layer in model._flatten_layers():
        for table in _tables_of(layer, length):
            tables.setdefault(table.name, table)
    return list(tables.values())


def _tables_of(layer, length):
    """Yield the `PositionTable` of each position encoding of a layer."""
    places = np.arange(min(length, MOST_POSITIONS))
    positions = [str(x) for x in places]
    reach = min(length - 1, FARTHEST)
    if isinstance(layer, TextEmbedding) and layer.max_length:
        rows = np.asarray(layer.position_table)[places + layer.position_offset]
        yield PositionTable("learned positions", positions, rows)
    if isinstance(layer, LearnedPositionEncoding):
        rows = np.asarray(layer.position_table)[places]
        yield PositionTable(f"learned positions ({layer.name})", positions, rows)
    if isinstance(layer, SinusoidalPositionEncoding):
        width = layer.output.shape[-1]
        rows = sinusoid_table(len(places), width, layer.max_wavelength, layer.interleaved)
        yield PositionTable("sinusoids of positions", positions, rows)
    if isinstance(layer, RelativePositionTable):
        rows = distance_rows(layer.max_distance, layer.num_buckets)
        middle = len(rows) // 2
        reach = min(reach, middle)
        # A row is of the query's position less the key's.
        chosen = rows[middle - np.arange(-reach, reach + 1)]
        table = ops.convert_to_numpy(layer(layer.table))
        yield PositionTable("learned distances", _signed(reach), table[chosen])
    if isinstance(layer, RelativeAttention):
        width = layer.position.kernel.shape[0]
        waves, _ = relative_sinusoids(reach + 1, reach + 1, width, layer.clamp_length)
        rows = ops.convert_to_numpy(waves)
        yield PositionTable("sinusoids of distances", _signed(reach), rows)


def _signed(reach):
    """Return the distances up to `reach` on either side as strings."""
    return [f"{x:+d}" if x else "0" for x in range(-reach, reach + 1)]
