"""Learned positions, added to a sequence."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.positions import check_length
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import EmbeddingsOptions


@keras.saving.register_keras_serializable("tfnlp")
class LearnedPositionEncoding(BaseLayer):
    """Learned position encoding, added to the inputs (Gehring et al. 2017; Devlin et al. 2019).

    Args:
        max_length: the number of positions.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: for their table.

    Call arguments:
        inputs: (B, L, D), L at most `max_length`.
        positions: (B, L) integers below `max_length`; 0 to L - 1 if None.

    Returns:
        (B, L, D).

    Raises:
        ValueError: if L is known and beyond `max_length`; else see `check_length`.
    """

    def __init__(self, max_length, **kwargs: Unpack[EmbeddingsOptions]):
        super().__init__(**kwargs)
        self.max_length = max_length

    def build(self, inputs_shape, positions_shape=None):
        table = "position_table", (self.max_length, inputs_shape[-1])
        self.position_table = self._weight("embeddings", *table, self.embeddings_initializer)

    def call(self, inputs, positions=None):
        inputs = check_length("inputs", inputs, self.max_length)
        rows = ops.arange(ops.shape(inputs)[1]) if positions is None else positions
        # Gathered, not sliced: TFLite quantises the tables of gathers alone.
        return inputs + ops.take(self.position_table, rows, axis=0)

    def compute_output_shape(self, inputs_shape, positions_shape=None):
        return inputs_shape
