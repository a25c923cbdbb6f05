"""Relative attention with memory (Transformer-XL)."""

import keras
from keras import ops

from tfnlp.layers.attention.base import BaseAttention, fill_inputs, seen_keys
from tfnlp.layers.attention.dot_product import add_by_head, scaled, split_heads, split_table
from tfnlp.layers.attention.memory import check_memory
from tfnlp.layers.attention.relative_scores import RelativeTerm
from tfnlp.layers.core.base_layer import KERNEL_OPTIONS
from tfnlp.layers.core.masks import with_memory
from tfnlp.layers.core.positions import sines_and_cosines


@keras.saving.register_keras_serializable("tfnlp")
class RelativeAttention(BaseAttention):
    """Attention by content and by relative position, over a memory of earlier positions.

    Dai et al. 2019, 'Transformer-XL', section 3.3: with R the sinusoids of the distance,
    `score(i, j) = ((q_i + u) . k_j + (q_i + v) . (W_R R_{i-j})) / sqrt(H)`. The queries are
    the last T of the S keys. Arguments by position are those of
    `keras.layers.MultiHeadAttention`; the scores it returns are those before the softmax.

    Args:
        num_heads: N, the number of heads.
        key_dim: H, the size of one head in queries and keys.
        value_dim: size of one head in the values; `key_dim` where None.
        dropout: share of attention weights dropped in training.
        use_bias: whether query, key, value and output projections add a bias; not in the paper.
        output_dim: width of the output; the width of the query where None.
        block_size: keys to attend to at a time, for long inputs (Rabe & Staats 2021); the
            (T, S) scores are never held then.
        kernel_initializer: for the kernels.
        clamp_length: the farthest distance that is told apart; any where None.
        position_dropout: share of the sinusoids dropped in training.
        bias_initializer: for u and v; other biases start at zero.
        output_initializer, activity_regularizer, kernel_regularizer, bias_regularizer,
            kernel_constraint, bias_constraint: as `MultiHeadAttention` takes them.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'); the query where None (self-attention).
        key: (B, S, D'); the value where None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where T may see S.
        return_attention_scores: also return the scores, (B, N, T, S).
        training: whether dropout is on.
        use_causal_mask: hide every position after the query's own; the scores of hidden
            positions are not meaningful then.
        memory: (B, M, D), earlier positions to put before key and value, without gradient;
            S counts them.
        content_bias: u, (N, H), to share it between layers (see `RelativeBiases`); where None
            the layer has its own.
        position_bias: v, (N, H), likewise.

    Returns:
        (B, T, D), or a pair of it and the scaled scores before mask and softmax. A query that
        may see nothing gets zeros, then the output bias.

    Raises:
        ValueError: for sizes below 1, an odd D, masks or a memory that do not fit, and where
            the scores are asked for with `block_size`.
    """

    OPTIONS = KERNEL_OPTIONS + ("bias_regularizer", "bias_constraint")
    STATES = ("memory",)

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=False,
        output_dim=None,
        *,
        clamp_length=None,
        position_dropout=0.0,
        bias_initializer="random_normal",
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, value_dim, dropout, use_bias, output_dim, **kwargs)
        if clamp_length is not None and clamp_length < 1:
            raise ValueError(f"clamp_length={clamp_length} must be at least 1.")
        self.clamp_length = clamp_length
        self.position_dropout = position_dropout
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.position_dropout_layer = keras.layers.Dropout(
            position_dropout, dtype=self.dtype_policy
        )

    def build(
        self,
        query_shape,
        value_shape=None,
        key_shape=None,
        memory_shape=None,
        content_bias_shape=None,
        position_bias_shape=None,
    ):
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        if query_shape[-1] % 2:
            raise ValueError(f"query has width {query_shape[-1]}, but sinusoids need an even one.")
        units = self.num_heads * self.key_dim
        self.query = self._projection(units, "query", query_shape)
        self.key = self._projection(units, "key", key_shape)
        self.value = self._projection(self.num_heads * self.value_dim, "value", value_shape)
        self.position = self._projection(
            units,
            "position",
            (None, query_shape[-1]),
            use_bias=False,
            activity_regularizer=None,  # of no input's activity
        )
        self._build_output(query_shape)
        self.content_bias = self._build_bias("content_bias", content_bias_shape)
        self.position_bias = self._build_bias("position_bias", position_bias_shape)

    def _build_bias(self, name, given_shape):
        shape = (self.num_heads, self.key_dim)
        if given_shape is None:
            return self._weight("bias", name, shape, self.bias_initializer)
        if tuple(given_shape) != shape:
            raise ValueError(f"{name} has shape {tuple(given_shape)}, but must be {shape}.")
        return None

    def call(
        self,
        query,
        value=None,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        memory=None,
        content_bias=None,
        position_bias=None,
        mask=None,
    ):
        self._check_scores(return_attention_scores)
        value, key, attention_mask, query_mask, key_mask = fill_inputs(
            query, value, key, query_mask, value_mask, key_mask, attention_mask, mask
        )
        if memory is not None:
            check_memory(memory, key.shape)
            memory = ops.stop_gradient(memory)
            if key_mask is not None:
                key_mask = with_memory(key_mask, ops.shape(memory)[1])
            same = key is value
            key = ops.concatenate([memory, key], axis=1)
            value = key if same else ops.concatenate([memory, value], axis=1)
        masks = attention_mask, query_mask, key_mask
        seen = seen_keys(query, key, *masks, use_causal_mask, self.num_heads)
        q = scaled(split_heads(self.query(query), self.num_heads))  # (B, N, T, H)
        k = split_heads(self.key(key), self.num_heads)  # (B, N, S, H)
        v = split_heads(self.value(value), self.num_heads)  # (B, N, S, H')
        u = _given_or_own("content_bias", content_bias, self.content_bias)
        w = _given_or_own("position_bias", position_bias, self.position_bias)
        positions = relative_positions(
            self, ops.shape(query)[1], ops.shape(key)[1], use_causal_mask, training
        )
        term = RelativeTerm(add_by_head(q, scaled(w)), *positions, causal=use_causal_mask)
        output, scores = self._attend(
            add_by_head(q, scaled(u)), k, v, seen, [term], training=training
        )
        return (output, scores) if return_attention_scores else output

    def compute_output_spec(self, query, value=None, key=None, *masks, memory=None, **kwargs):
        source = query if value is None else value
        length = source.shape[1]
        if memory is not None:
            known = None not in (length, memory.shape[1])
            length = length + memory.shape[1] if known else None
        return self._output_spec(query, length, **kwargs)

    def get_config(self):
        return super().get_config() | {
            "clamp_length": self.clamp_length,
            "position_dropout": self.position_dropout,
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }


def relative_positions(layer, length, source_length, causal, training):
    """The projected sinusoids of a layer with `position` and `clamp_length`, as terms take them.

    Args:
        layer: a `RelativeAttention` or `TwoStreamAttention`.
        length: T.
        source_length: S.
        causal: whether keys after the query's own are masked.
        training: whether dropout is on.

    Returns:
        (N, R, H), and the (T + S - 1,) rows of it for each offset of a key from a query.
    """
    offsets = length + source_length - 1
    distances = source_length - 1 - ops.arange(offsets)
    dropped = layer.position_dropout and training
    if causal or dropped or layer.position.quantization_mode:
        # Causal attention never looks ahead: one row past distance 0 is all that the shift needs.
        used = distances[: source_length + 1] if causal else distances
        r = ops.concatenate(_waves(layer, used), axis=-1)
        r = layer.position(layer.position_dropout_layer(r, training=training))
        rows = ops.arange(offsets)
        rows = ops.minimum(rows, source_length) if causal else rows
        return split_table(r, layer.num_heads), rows
    # Sines are odd and cosines even, so one product of half the rows gives both directions.
    count = _larger(length, source_length)
    sines, cosines = _waves(layer, ops.arange(count))
    kernel = ops.convert_to_tensor(layer.position.kernel)
    # `split`, as the gradient of each half of a slice is a whole kernel.
    of_sines, of_cosines = ops.split(kernel, 2)
    by_sines, by_cosines = ops.matmul(sines, of_sines), ops.matmul(cosines, of_cosines)
    r = ops.concatenate([by_cosines + by_sines, by_cosines - by_sines], axis=0)
    rows = ops.where(distances < 0, count - distances, distances)
    return split_table(r, layer.num_heads), rows


def _waves(layer, distances):
    """The sines and cosines of distances, clamped as the layer does it: (L, D / 2) each."""
    if layer.clamp_length:
        distances = ops.clip(distances, -layer.clamp_length, layer.clamp_length)
    found = sines_and_cosines(distances, layer.position.kernel.shape[0])
    return [ops.cast(x, layer.compute_dtype) for x in found]


def _larger(a, b):
    """Of two lengths, either of which may be a tensor."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else ops.maximum(a, b)


def _given_or_own(name, given, own):
    if given is None:
        if own is None:
            raise ValueError(f"{name} was given when the layer was built, so it must be given.")
        return ops.convert_to_tensor(own)
    if own is not None:
        raise ValueError(f"{name} was given, but the layer was built with one of its own.")
    return given
