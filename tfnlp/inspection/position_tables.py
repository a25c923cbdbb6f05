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
        for name, labels, rows in _tables_of(layer, length):
            table = PositionTable(name, [f"{x:+d}" if x else "0" for x in labels], rows)
            if labels and labels[0] == 0:
                table = PositionTable(name, [str(x) for x in labels], rows)
            tables.setdefault(name, table)
    return list(tables.values())


def _tables_of(layer, length):
    """Yield a name, positions or distances, and rows of each position encoding of a layer."""
    places = list(range(min(length, MOST_POSITIONS)))
    reach = min(length - 1, FARTHEST)
    distances = list(range(-reach, reach + 1))
    if isinstance(layer, TextEmbedding) and layer.max_length:
        rows = np.add(places, layer.position_offset)
        yield "learned positions", places, np.asarray(layer.position_table)[rows]
    if isinstance(layer, LearnedPositionEncoding):
        yield f"learned positions ({layer.name})", places, np.asarray(layer.position_table)[places]
    if isinstance(layer, SinusoidalPositionEncoding):
        width = layer.output.shape[-1]
        rows = sinusoid_table(len(places), width, layer.max_wavelength, layer.interleaved)
        yield "sinusoids of positions", places, rows
    if isinstance(layer, RelativePositionTable):
        rows = distance_rows(layer.max_distance, layer.num_buckets)
        middle = len(rows) // 2
        reach = min(reach, middle)
        # A row is of the query's position less the key's.
        chosen = rows[middle - np.arange(-reach, reach + 1)]
        table = ops.convert_to_numpy(layer(layer.table))
        yield "learned distances", list(range(-reach, reach + 1)), table[chosen]
    if isinstance(layer, RelativeAttention):
        width = layer.position.kernel.shape[0]
        waves, _ = relative_sinusoids(reach + 1, reach + 1, width, layer.clamp_length)
        yield "sinusoids of distances", distances, ops.convert_to_numpy(waves)
