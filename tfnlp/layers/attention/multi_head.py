"""Multi-head attention (Vaswani et al. 2017)."""

import dataclasses
from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.attention import Scores
from tfnlp.functional.attention_heads import scaled, split_heads
from tfnlp.functional.int8_cache import Int8Cache, int8_product
from tfnlp.functional.masks import combine_masks
from tfnlp.functional.shapes import check_sizes
from tfnlp.layers.attention.base_attention import BaseAttention
from tfnlp.layers.core.base_layer import check_choice, check_layer
from tfnlp.layers.core.weight_options import AttentionOptions, WeightOptions, weight_options


@keras.saving.register_keras_serializable("tfnlp")
class MultiHeadAttention(BaseAttention):
    """`keras.layers.MultiHeadAttention`, but the scores it returns are those before the softmax.

    Arguments by position are those of Keras, with two differences: the value may be left out, and
    the scores are the scaled products before mask and softmax, which is what distillation
    compares. Vaswani et al. 2017, 'Attention Is All You Need', section 3.2: eq. 1 for one head,
    `concat(head_1 .. head_N) W^O` for all.

    Args: those of `BaseAttention`, and
        rotary: a `RotaryEmbedding` by which queries and keys turn, or None.
        window: attend to keys at most so many positions away, without holding all scores, unless
            they are asked for: those are of all keys. Of self-attention; None for all keys.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'); the query if None (self-attention).
        key: (B, S, D'); the value if None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where T may see S. By
            position it is the fourth, `layer(x, x, x, mask)`, as well as the seventh.
        return_attention_scores: also return the scores, (B, N, T, S).
        training: whether dropout is on.
        use_causal_mask: hide every position after the query's own.
        return_projections: also return query (B, N, T, H), key (B, N, S, H) and value (B, N, S,
            H'), as they are projected for each head, not yet scaled.
        cache: what was projected before, so that it need not be again: keys (B, N, C, H), values
            (B, N, C, H'), and the first of the C places to put those of the query's own T tokens
            at, a scalar tensor; without it, a pair, nothing is put (cross-attention, by
            `project_source`). The query attends to the places that `attention_mask` (B, T, C)
            says, no other mask counting; the keys and values of `return_projections` are of all C.
            Beside a place they may be `Int8Cache`s, and then are so in the projections.

    Returns:
        (B, T, D), or a tuple of it, the scores and the projections, as asked for. A query that may
        see nothing gets the output bias alone, its attention being zeros.

    Raises:
        ValueError: for sizes below 1, for masks that do not fit, where the scores are asked for
            with `block_size`, for a cache of another batch, and for a cache or another source with
            `rotary` or `window`.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_dim=None,
        *,
        block_size=None,
        rotary=None,
        window=None,
        **kwargs: Unpack[AttentionOptions],
    ):
        kwargs |= {"output_dim": output_dim, "block_size": block_size}
        super().__init__(num_heads, key_dim, value_dim, dropout, use_bias, **kwargs)
        check_layer("rotary", rotary, "RotaryEmbedding()")
        self.rotary = rotary
        self.window = window
        check_sizes(window=window)

    @classmethod
    def from_keras(cls, attention):
        """Return the layer that equals a `keras.layers.MultiHeadAttention`.

        It has the same sizes, dropout, initializers, regularizers, constraints and dtype, and if
        that layer is built its weights.

        Args:
            attention: of inputs (B, L, D), without gate and sliding window.

        Raises:
            ValueError: if `attention` computes what this layer does not.
        """
        config = attention.get_config()
        allowed = {"use_gate": (False,), "sliding_window": (None,)}
        allowed["attention_axes"] = (None, (1,), [1])  # None until it is built
        for name, values in allowed.items():
            check_choice(f"{name} of the attention", config[name], values)
        names = ("num_heads", "key_dim", "value_dim", "dropout", "use_bias", "trainable")
        names += ("activity_regularizer", *weight_options(WeightOptions))
        (width,) = config["output_shape"] or (None,)  # an output of one axis
        options = {name: config[name] for name in names}
        layer = cls(**options, output_dim=width, dtype=attention.dtype_policy)
        if not attention.built:
            return layer
        parts = {name: getattr(attention, f"{name}_dense") for name in ("query", "value", "key")}
        layer.build(*((None, None, part.kernel.shape[0]) for part in parts.values()))
        for name, part in (parts | {"output_dense": attention.output_dense}).items():
            dense = getattr(layer, name)
            dense.kernel.assign(ops.reshape(part.kernel, dense.kernel.shape))
            if part.bias is not None:
                dense.bias.assign(ops.reshape(part.bias, dense.bias.shape))
        return layer

    def build(self, query_shape, value_shape=None, key_shape=None):
        self._build_inputs(query_shape, value_shape, key_shape)
        self._build_output(query_shape)

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
        mask=None,
        return_projections=False,
        *,
        cache=None,
    ):
        call = self._gather(
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
            mask=mask,
            return_projections=return_projections,
        )
        self._check_is_of_itself(query, value, cache)
        if cache is None:
            q, k, v, mask = self._inputs(call, query, value, key)
            if self.rotary is not None:
                q, k = self.rotary(q), self.rotary(k)
        else:
            q, k, v, mask = self._cached_inputs(query, call.attention_mask, cache)
            if isinstance(k, Int8Cache):
                call = dataclasses.replace(call, product=int8_product)
        scores = Scores(scaled(q), k)  # q_i . k_j / sqrt(H), of (B, N, T, H) and (B, N, S, H)
        return self._attend(call, scores, (q, k, v), mask)

    def rounded_tensors(self):
        # A turned key has another range than the projection that it is of.
        return super().rounded_tensors() | ({} if self.rotary is None else {"key": None})

    def _check_is_of_itself(self, query, value, cache):
        """Raise a ValueError for another source where positions count."""
        if self.rotary is None and not self.window:
            return
        lengths = {query.shape[1], query.shape[1] if value is None else value.shape[1]}
        if cache is not None or len(lengths - {None}) > 1:
            raise ValueError(
                "rotary or window is of attention of a text to itself, without a cache; give "
                "values of the query's length."
            )

    def project_source(self, value):
        """Return keys (B, N, S, H) and values of states (B, S, D'), a `cache` for many queries."""
        pairs = ((self.key, value), (self.value, value))
        return tuple(split_heads(dense(x), self.num_heads) for dense, x in pairs)

    def _cached_inputs(self, query, attention_mask, cache):
        """Project the inputs as `_inputs` does, and put the query's keys and values in a cache."""
        keys, values, *place = cache
        if query.shape[0] not in (None, keys.shape[0]):
            raise ValueError(
                f"cache is of a batch of {keys.shape[0]}, but query of one of {query.shape[0]}."
            )
        mask = combine_masks(query.shape, (keys.shape[0], keys.shape[2]), attention_mask)
        if not place:
            return split_heads(self.query(query), self.num_heads), keys, values, mask
        q, k, v = self._project(query, query, query)
        if isinstance(keys, Int8Cache):
            return q, keys.put(k, *place), values.put(v, *place, is_value=True), mask
        k = ops.slice_update(keys, (0, 0, *place, 0), k)
        v = ops.slice_update(values, (0, 0, *place, 0), v)
        return q, k, v, mask
