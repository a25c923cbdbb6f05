"""The biases of Transformer-XL, for several layers to share."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import BiasPenalties


@keras.saving.register_keras_serializable("tfnlp")
class RelativeBiases(BaseLayer):
    """The biases u and v of Transformer-XL, for several layers to share.

    Args:
        num_heads: N, the number of heads.
        key_dim: H, the size of one head.
        bias_initializer, bias_regularizer, bias_constraint: for both.

    Call arguments:
        inputs: any tensor; it only joins the layer to a functional model.

    Returns:
        u and v, each (N, H).
    """

    keeps_positions = False

    def __init__(
        self, num_heads, key_dim, bias_initializer="random_normal", **kwargs: Unpack[BiasPenalties]
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, input_shape):
        shape = (self.num_heads, self.key_dim)
        self.content_bias, self.position_bias = (
            self._weight("bias", name, shape, self.bias_initializer)
            for name in ("content_bias", "position_bias")
        )

    def call(self, inputs):
        biases = self.content_bias, self.position_bias
        return tuple(ops.cast(bias, self.compute_dtype) for bias in biases)

    def compute_output_spec(self, inputs):
        return self._specs(*[(self.num_heads, self.key_dim)] * 2)
