"""Vectors of nodes at places."""

import keras
from keras import ops

from tfnlp.layers.core.base_layer import BaseLayer


@keras.saving.register_keras_serializable("tfnlp")
class GatherNodes(BaseLayer):
    """The vectors of a graph's nodes at places, such as those of a path.

    Call arguments:
        nodes: (B, L, D).
        places: (B, ...) integers, each from 0 to L - 1.

    Returns:
        (B, ..., D): for each text, `nodes[places]`.
    """

    keeps_positions = False

    def call(self, nodes, places):
        batch, length, width = ops.shape(nodes)
        # One gather along one axis, which TFLite has as a builtin.
        rows = ops.reshape(nodes, (-1, width))
        first = ops.cast(ops.arange(batch) * length, places.dtype)  # (B,)
        numbers = ops.reshape(places, (batch, -1)) + first[:, None]
        return ops.reshape(ops.take(rows, numbers, axis=0), (*ops.shape(places), width))

    def compute_output_spec(self, nodes, places):
        return self._specs((*places.shape, nodes.shape[-1]))
