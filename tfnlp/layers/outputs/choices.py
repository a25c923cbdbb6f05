"""Multiple choice: texts flattened into the batch, and back."""

import keras
from keras import ops

from tfnlp.layers.core.base_layer import BaseLayer


@keras.saving.register_keras_serializable("tfnlp")
class MergeChoices(BaseLayer):
    """Reshape of multiple-choice inputs (B, choices, ...) to (B * choices, ...)."""

    keeps_positions = False

    def call(self, inputs):
        return ops.reshape(inputs, (-1, *ops.shape(inputs)[2:]))

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((None, *inputs.shape[2:]), dtype=inputs.dtype)


@keras.saving.register_keras_serializable("tfnlp")
class SplitChoices(BaseLayer):
    """Reshape of one score per text, (B * choices, 1), to (B, choices).

    Call arguments:
        inputs: (B * choices, 1).
        choices: (B, choices, ...), the tensor whose shape is taken.
    """

    keeps_positions = False

    def call(self, inputs, choices):
        return ops.reshape(inputs, ops.shape(choices)[:2])

    def compute_output_spec(self, inputs, choices):
        return self._specs(choices.shape[:2])
