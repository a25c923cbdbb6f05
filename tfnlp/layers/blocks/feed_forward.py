"""The position-wise feed-forward network of a transformer block."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.activations import get_activation
from tfnlp.functional.shapes import check_sizes
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import WeightOptions


@keras.saving.register_keras_serializable("tfnlp")
class FeedForward(BaseLayer):
    """`act(x W_1 + b_1) W_2 + b_2` (Vaswani et al. 2017, eq. 2), or with a gate.

    Gated it is `(act(x W) * x V) W_2`, with GELU a GeGLU (Shazeer 2020, 'GLU Variants Improve
    Transformer', eq. 6); one kernel holds W and V.

    Args:
        intermediate_dim: F, the inner width.
        activation: name from `tfnlp.functional.activations`, or a callable; "gelu" is exact.
        dropout: share of inner activations dropped in training.
        gated: whether a second product of the inputs gates the inner activations.
        use_bias: whether the products add a bias.
        kernel_initializer: for both kernels.
        output_initializer: for the second; `kernel_initializer` if None.
        kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint,
            bias_initializer: for both.

    Call arguments:
        inputs: (B, L, D).

    Returns:
        (B, L, D).
    """

    def __init__(
        self,
        intermediate_dim,
        activation="gelu",
        dropout=0.0,
        output_initializer=None,
        *,
        gated=False,
        use_bias=True,
        **kwargs: Unpack[WeightOptions],
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.dropout = dropout
        self.output_initializer = keras.initializers.get(output_initializer)
        self.gated = gated
        self.use_bias = use_bias
        check_sizes(intermediate_dim=intermediate_dim)
        self.activate = get_activation(activation)
        units = 2 * intermediate_dim if gated else intermediate_dim
        self.intermediate = self._dense(units, "intermediate", use_bias=use_bias)
        self.dropout_layer = self._dropout_layer(dropout)

    def build(self, input_shape):
        self.intermediate.build(input_shape)
        self.output_dense = self._dense(
            input_shape[-1], "output", self.output_initializer, use_bias=self.use_bias
        )
        self.output_dense.build((*input_shape[:-1], self.intermediate_dim))

    def call(self, inputs, training=None):
        x = self.intermediate(inputs)  # (B, L, F), or (B, L, 2 F)
        if self.gated:
            x, gate = ops.split(x, 2, axis=-1)  # x W and x V
            x = self.activate(x) * gate
        else:
            x = self.activate(x)
        return self.output_dense(self.dropout_layer(x, training=training))  # (B, L, D)

    def compute_output_shape(self, input_shape):
        return input_shape
