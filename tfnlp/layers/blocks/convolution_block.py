"""The convolution beside the first block of DeBERTa v2."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.activations import get_activation
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.layer_normalization import LayerNormalization
from tfnlp.layers.core.weight_options import WeightOptions


@keras.saving.register_keras_serializable("tfnlp")
class ConvolutionBlock(BaseLayer):
    """`norm(states + act(conv(inputs)))`, which gives DeBERTa-v2-xlarge its n-grams.

    He et al. 2021, DeBERTa's code release 2.0 ('nGiE').

    Args:
        kernel_size: tokens that one output sees, odd.
        groups: of channels, convolved apart.
        activation: name from `tfnlp.functional.activations`, or a callable.
        dropout: applied to the convolution in training.
        layer_norm_epsilon: added to the variance.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the kernel.
        bias_initializer, bias_regularizer, bias_constraint: for its bias.

    Call arguments:
        inputs: (B, L, D), to convolve; zeros replace padding.
        states: (B, L, D), the output of the block beside it.
        padding_mask: (B, L), 1 at real tokens; the Keras mask of the inputs if None.

    Returns:
        (B, L, D), zeros at padding.
    """

    def __init__(
        self,
        kernel_size,
        groups=1,
        activation="tanh",
        dropout=0.0,
        layer_norm_epsilon=1e-7,
        **kwargs: Unpack[WeightOptions],
    ):
        super().__init__(**kwargs)
        self.kernel_size = kernel_size
        self.groups = groups
        self.activation = activation
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        if kernel_size % 2 == 0:
            raise ValueError(f"kernel_size={kernel_size} must be odd, for a token in the middle.")
        self.activate = get_activation(activation)
        self.dropout_layer = self._dropout_layer(dropout)
        self.norm = LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )

    def build(self, inputs_shape, states_shape=None, padding_mask_shape=None):
        self.convolution = keras.layers.Conv1D(
            inputs_shape[-1],
            self.kernel_size,
            padding="same",
            groups=self.groups,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="convolution",
            **self.options(),
        )
        self.convolution.build(inputs_shape)
        self.norm.build(inputs_shape)

    def call(self, inputs, states, padding_mask=None, training=None, inputs_mask=None):
        mask = None
        padding_mask = inputs_mask if padding_mask is None else padding_mask
        if padding_mask is not None:
            mask = ops.cast(padding_mask, self.compute_dtype)[:, :, None]  # (B, L, 1)
            inputs = inputs * mask
        x = self.convolution(inputs)
        if mask is not None:
            x = x * mask
        x = self.norm(states + self.activate(self.dropout_layer(x, training=training)))
        return x if mask is None else x * mask

    def compute_output_spec(self, inputs, states, padding_mask=None, **kwargs):
        return self._specs(states.shape)
