"""The state of the last real token."""

import keras
from keras import ops

from tfnlp.layers.base_layer import BaseLayer


@keras.saving.register_keras_serializable("tfnlp")
class LastState(BaseLayer):
    """The states (B, D) of each row's last real token.

    Call arguments:
        inputs: (B, L, D).
        padding_mask: (B, L), 1 at real tokens; a row without any gives its first state.

    Returns:
        (B, D).
    """

    def call(self, inputs, padding_mask):
        positions = ops.arange(ops.shape(inputs)[1])  # (L,)
        mask = ops.cast(padding_mask, positions.dtype)
        last = ops.max(mask * positions, axis=1, keepdims=True)  # (B, 1)
        # A product, not a gather along two axes: TFLite has it as a builtin.
        one_hot = ops.cast(ops.equal(positions[None], last), inputs.dtype)  # (B, L)
        return ops.squeeze(ops.matmul(one_hot[:, None], inputs), axis=1)

    def compute_output_spec(self, inputs, padding_mask):
        batch, _, dim = inputs.shape
        return keras.KerasTensor((batch, dim), dtype=self.compute_dtype)
