"""Relative attention with memory (Transformer-XL)."""

import keras
from keras import ops

from tfnlp.functional.attention import Scores
from tfnlp.functional.attention_heads import add_by_head, scaled, split_table
from tfnlp.functional.relative_positions import projected_sinusoids, relative_sinusoids
from tfnlp.functional.relative_scores import query_to_position
from tfnlp.layers.attention.base_attention import BaseAttention, select_weight
from tfnlp.layers.core.base_layer import KERNEL_OPTIONS


@keras.saving.register_keras_serializable("tfnlp")
class RelativeAttention(BaseAttention):
    """Attention by content and by relative position, over a memory of earlier positions.

    Dai et al. 2019, 'Transformer-XL', section 3.3: with r_{i-j} the projected sinusoids of the
    distance, W_R R_{i-j},
    `score(i, j) = (q_i . k_j + q_i . r_{i-j} + u . k_j + v . r_{i-j}) / sqrt(H)`, the paper's
    terms (a) to (d). The queries are the last T of the S keys. Arguments by position are those of
    `keras.layers.MultiHeadAttention`; the scores it returns are those before the softmax.

    Args:
        num_heads, key_dim, value_dim, dropout, output_dim, block_size, kernel_initializer,
            output_initializer, activity_regularizer, kernel_regularizer, bias_regularizer,
            kernel_constraint, bias_constraint: as `MultiHeadAttention` takes them.
        use_bias: whether query, key, value and output projections add a bias; not in the paper.
        clamp_length: the farthest distance that is told apart; any if None.
        position_dropout: share of the sinusoids dropped in training.
        bias_initializer: for u and v; other biases start at zero.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'); the query if None (self-attention).
        key: (B, S, D'); the value if None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where T may see S.
        return_attention_scores: also return the scores, (B, N, T, S).
        training: whether dropout is on.
        use_causal_mask: hide every position after the query's own; the scores of hidden
            positions are not meaningful then.
        memory: (B, M, D), earlier positions to put before key and value, without gradient;
            S counts them.
        content_bias: u, (N, H), to share it between layers (see `RelativeBiases`); if None
            the layer has its own.
        position_bias: v, (N, H), likewise.
        return_projections: also return query, key and value, as `MultiHeadAttention` does.

    Returns:
        (B, T, D), or a tuple of it, the scaled scores before mask and softmax, and the
        projections, as asked for. A query that may see nothing gets zeros, then the output bias.

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
        self._build_inputs(query_shape, value_shape, key_shape)
        self._build_position(query_shape)
        self._build_output(query_shape)
        self.content_bias = self._build_bias("content_bias", content_bias_shape)
        self.position_bias = self._build_bias("position_bias", position_bias_shape)

    def rounded_tensors(self):
        return super().rounded_tensors() | {"position_query": None, "position_scores": None}

    def _build_position(self, query_shape, name="query"):
        width = query_shape[-1]
        if width % 2:
            raise ValueError(f"{name} has width {width}, but sinusoids need an even one.")
        # Without a regularizer of its activity, which is of no input.
        options = {"use_bias": False, "activity_regularizer": None}
        units = self.num_heads * self.key_dim
        self.position = self._projection(units, "position", (None, width), **options)

    def _build_bias(self, name, shared_shape=None):
        shape = (self.num_heads, self.key_dim)
        if shared_shape is None:
            return self._weight("bias", name, shape, self.bias_initializer)
        if tuple(shared_shape) != shape:
            raise ValueError(f"{name} has shape {tuple(shared_shape)}, but must be {shape}.")
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
        return_projections=False,
    ):
        call = self._gather(
            query_mask,
            value_mask,
            key_mask,
            attention_mask,
            mask,
            use_causal_mask=use_causal_mask,
            training=training,
            return_attention_scores=return_attention_scores,
            return_projections=return_projections,
        )
        q, k, v, mask = self._inputs(call, query, value, key, memory)
        u = select_weight("content_bias", content_bias, self.content_bias)  # u, (N, H)
        w = select_weight("position_bias", position_bias, self.position_bias)  # v, (N, H)
        lengths = ops.shape(query)[1], ops.shape(k)[2]
        r, rows = self._positions(*lengths, use_causal_mask, training)  # (N, R, H), (T + S - 1,)
        scaled_q = scaled(q)  # (B, N, T, H), over sqrt(H)
        # (a) q_i . k_j + (c) u . k_j
        scores = Scores(add_by_head(scaled_q, scaled(u)), k)
        # (b) q_i . r_{i-j} + (d) v . r_{i-j}
        by_position = add_by_head(scaled_q, scaled(w))
        scores += query_to_position(by_position, r, rows, causal=use_causal_mask)
        output, scores = self._attend(call, scores, v, mask)
        return call.results(output, scores, q, k, v)

    def _positions(self, length, source_length, causal, training):
        """Compute the projected sinusoids, in the form of a `RelativeTerm`.

        Args:
            length: T.
            source_length: S.
            causal: whether keys after the query's own are masked.
            training: whether dropout is on.

        Returns:
            (N, R, H), and the (T + S - 1,) rows of it for each offset of a key from a query.
        """
        lengths, drops = (length, source_length), self.position_dropout and training
        if causal or drops or not self.position.is_plain:
            width = self.position.kernel.shape[0]
            r, rows = relative_sinusoids(*lengths, width, self.clamp_length, causal=causal)
            r = ops.cast(r, self.compute_dtype)
            r = self.position(self.position_dropout_layer(r, training=training))
        else:
            r, rows = projected_sinusoids(*lengths, self.position.kernel, self.clamp_length)
        return split_table(r, self.num_heads), rows
