"""The bias of a tied output."""

import keras

from tfnlp.layers.core.base_layer import BIAS_OPTIONS, BaseLayer


@keras.saving.register_keras_serializable("tfnlp")
class OutputBias(BaseLayer):
    """Learned bias over the last axis, such as one for each token's logit.

    Args:
        bias_initializer, bias_regularizer, bias_constraint: for them.

    Call arguments:
        inputs: (..., V).

    Returns:
        (..., V).
    """

    OPTIONS = BIAS_OPTIONS

    def build(self, input_shape):
        self.bias = self._weight("bias", "bias", (input_shape[-1],), self.bias_initializer)

    def call(self, inputs):
        return inputs + self.bias

    def compute_output_shape(self, input_shape):
        return input_shape
