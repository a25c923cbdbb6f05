"""Attention over images by quadratic position, which can be any convolution."""

import itertools
from typing import Unpack

import keras
import numpy as np
from keras import ops

from tfnlp.functional.activations import get_activation
from tfnlp.functional.attention import fused_attention
from tfnlp.functional.masks import combine_masks
from tfnlp.functional.shapes import check_sizes
from tfnlp.layers.core.base_layer import BaseLayer, check_choice
from tfnlp.layers.core.weight_options import WeightOptions
from tfnlp.quantization.fake_quantization import WEIGHT_RANGE


@keras.saving.register_keras_serializable("tfnlp")
class QuadraticPositionAttention(BaseLayer):
    """2-D attention by relative position alone: each head looks around one learned offset.

    Cordonnier et al. 2020, 'On the relationship between self-attention and convolutional
    layers', Lemma 2: for a shift d from query pixel to key pixel, the score is v . r_d with
    `v = -a (1, -2 D1, -2 D2)` and `r_d = (|d|^2, d1, d2)`, that is, up to a constant of the
    head, `-a |d - D|^2`: a Gaussian about the centre D of width a. The output is
    `sum over heads of A^(h) X W_val^(h) W_out^(h) + b` (eq. 3). By Theorem 1, K^2 heads express
    any K x K convolution: see `from_convolution`.

    Args:
        num_heads: N, the number of heads.
        filters: C', the channels of the output.
        value_dim: channels of one head's values; if None the values are the input itself,
            and W_out takes all C channels of each head.
        activation: of the output.
        use_bias: whether the output adds a bias.
        center_initializer: for the centres D, (N, 2) in pixels (rows, columns).
        width_initializer: for the widths a, (N,), in 1 / pixels^2; the larger, the narrower.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the kernels.
        bias_initializer, bias_regularizer, bias_constraint: for the output's bias.

    Call arguments:
        inputs: (B, height, width, C).
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S) with T = S = height * width,
            row by row, true where T may see S.
        return_attention_scores: also return the scores, (B, N, T, S).

    Returns:
        (B, height, width, C'), or a pair of it and the scores before mask and softmax.

    Raises:
        ValueError: for sizes below 1, inputs that are not images, and masks that do not fit.
    """

    def __init__(
        self,
        num_heads,
        filters,
        value_dim=None,
        activation="linear",
        use_bias=True,
        center_initializer="random_normal",
        width_initializer="ones",
        **kwargs: Unpack[WeightOptions],
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.filters = filters
        self.value_dim = value_dim
        self.activation = activation
        self.use_bias = use_bias
        self.center_initializer = keras.initializers.get(center_initializer)
        self.width_initializer = keras.initializers.get(width_initializer)
        check_sizes(num_heads=num_heads, filters=filters, value_dim=value_dim)
        self.activate = get_activation(activation)
        self.input_spec = keras.layers.InputSpec(ndim=4)

    @classmethod
    def from_convolution(cls, convolution, width=100.0):
        """Build the layer that equals a built `keras.layers.Conv2D`, away from the border.

        Theorem 1: one head for each pixel of the K x K kernel, centred on it, with that
        pixel's (C, C') weights as its W_out. Its output (B, height, width, C') is that of the
        convolution with padding "same" wherever the whole window is inside; beyond the border a
        convolution reads zeros, and attention the nearest pixel.

        Args:
            convolution: a built `Conv2D` with stride 1, one group and channels last; any
                kernel size, dilation, bias and activation.
            width: a of every head: the weight of a neighbouring pixel is exp(-a).

        Raises:
            ValueError: for a convolution that attention is not.
        """
        for name, due in (("strides", (1, 1)), ("groups", 1), ("data_format", "channels_last")):
            check_choice(f"{name} of the convolution", getattr(convolution, name), (due,))
        rows, columns, channels, filters = convolution.kernel.shape
        layer = cls(
            rows * columns,
            filters,
            activation=keras.activations.serialize(convolution.activation),
            use_bias=convolution.use_bias,
            dtype=convolution.dtype_policy,
        )
        layer.build((None, None, None, channels))
        offsets = [
            [i * dilation - (size - 1) * dilation // 2 for i in range(size)]
            for size, dilation in zip((rows, columns), convolution.dilation_rate, strict=True)
        ]
        layer.centers.assign(np.array(list(itertools.product(*offsets)), "float32"))
        layer.widths.assign(np.full(rows * columns, width, "float32"))
        kernel = ops.convert_to_numpy(convolution.kernel)
        layer.output_dense.kernel.assign(kernel.reshape(-1, filters))
        if convolution.use_bias:
            layer.output_dense.bias.assign(convolution.bias)
        return layer

    def build(self, input_shape):
        shape = (self.num_heads, 2)
        self.centers = self.add_weight(shape, self.center_initializer, name="centers")
        self.widths = self.add_weight(shape[:1], self.width_initializer, name="widths")
        channels = input_shape[-1]
        if self.value_dim:
            units = self.num_heads * self.value_dim
            self.value = self._dense(units, "value", use_bias=False)
            self.value.build(input_shape)
            channels = self.value_dim
        self.output_dense = self._dense(self.filters, "output", use_bias=self.use_bias)
        self.output_dense.build((*input_shape[:-1], self.num_heads * channels))

    def call(
        self,
        inputs,
        attention_mask=None,
        return_attention_scores=False,
        mask=None,
        inputs_mask=None,
    ):
        # Keras passes a mask on as `mask` beside one tensor, as `inputs_mask` beside several.
        mask = inputs_mask if mask is None else mask
        batch, height, width, channels = ops.shape(inputs)
        value = self._value(inputs)  # (B, N or 1, height, width, C)
        # v . r_d is a sum of a part in rows and a part in columns.
        by_row, by_column = self._scores(height, 0), self._scores(width, 1)  # (N, L, L) each
        scores = None
        if attention_mask is not None or mask is not None or return_attention_scores:
            # Reshaped: TFLite cannot add two axes at once to an array of open lengths.
            scores = ops.reshape(by_row, (-1, height, 1, height, 1)) + ops.reshape(
                by_column, (-1, 1, width, 1, width)
            )
            scores = ops.reshape(scores, (1, self.num_heads, height * width, height * width))
        if attention_mask is None and mask is None:
            # So is its softmax a product, and attention goes along columns, then along rows.
            rows = ops.cast(ops.softmax(by_row), inputs.dtype)[None, :, None]
            columns = ops.cast(ops.softmax(by_column), inputs.dtype)[None, :, None]
            product = self.products()
            x = product("columns", _along_columns, weights=columns, value=value)
            x = product("rows", _along_rows, weights=rows, columns=x)  # (B, N, height, width, C)
        else:
            x = self._masked(scores, value, inputs, attention_mask, mask)
        x = ops.transpose(x, (0, 2, 3, 1, 4))  # (B, height, width, N, C)
        channels = self.value_dim or channels
        x = ops.reshape(x, (-1, height, width, self.num_heads * channels))
        output = self.activate(self.output_dense(x))
        if not return_attention_scores:
            return output
        return output, ops.tile(ops.cast(scores, self.compute_dtype), (batch, 1, 1, 1))

    def rounded_tensors(self):
        return {"value": None, "columns": None, "weights": WEIGHT_RANGE}

    def _value(self, inputs):
        if not self.value_dim:
            return inputs[:, None]
        _, height, width, _ = ops.shape(inputs)
        shape = (-1, height, width, self.num_heads, self.value_dim)
        return ops.transpose(ops.reshape(self.value(inputs), shape), (0, 3, 1, 2, 4))

    def _scores(self, length, axis):
        """Compute -a (d^2 - 2 D d) along one axis, (N, length, length), in float32."""
        places = ops.arange(length, dtype="float32")
        shift = places[None, :] - places[:, None]  # key less query
        center = ops.cast(self.centers, "float32")[:, axis, None, None]
        width = ops.cast(self.widths, "float32")[:, None, None]
        return -width * (shift * shift - 2 * center * shift)

    def _masked(self, scores, value, inputs, attention_mask, mask):
        _, height, width, _ = ops.shape(inputs)
        known = inputs.shape[1] is not None and inputs.shape[2] is not None
        pixels = (inputs.shape[0], height * width if known else None, None)
        if mask is not None:
            mask = ops.reshape(mask, (-1, height * width))
        mask = combine_masks(
            pixels, pixels, attention_mask, key_mask=mask, num_heads=self.num_heads
        )
        shape = (-1, value.shape[1], height * width, value.shape[-1])
        value = ops.reshape(value, shape)
        scores = ops.cast(scores, inputs.dtype)
        x = fused_attention(scores, value, mask, product=self.products())
        return ops.reshape(x, (-1, self.num_heads, height, width, value.shape[-1]))

    def compute_output_spec(
        self, inputs, attention_mask=None, return_attention_scores=False, **kwargs
    ):
        batch, height, width, _ = inputs.shape
        pixels = None if None in (height, width) else height * width
        shapes = [(*inputs.shape[:-1], self.filters), (batch, self.num_heads, pixels, pixels)]
        return self._specs(*shapes[: 1 + bool(return_attention_scores)])


def _along_columns(weights, x):
    """Sum x (B, N, height, width, C) over its columns by weights (1, N, 1, width, width)."""
    return ops.matmul(weights, x)


def _along_rows(weights, x):
    """Sum x (B, N, height, width, C) over its rows by weights (1, N, 1, height, height)."""
    return ops.swapaxes(ops.matmul(weights, ops.swapaxes(x, 2, 3)), 2, 3)
