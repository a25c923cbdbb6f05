"""The bias of a tied output."""

from typing import Unpack

import keras

from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import BiasOptions


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

    def __init__(self, **kwargs: Unpack[BiasOptions]):
        super().__init__(**kwargs)

    def build(self, input_shape):
        self.bias = self._weight("bias", "bias", (input_shape[-1],), self.bias_initializer)

    def call(self, inputs):
        return inputs + self.bias

    def compute_output_shape(self, input_shape):
        return input_shape
