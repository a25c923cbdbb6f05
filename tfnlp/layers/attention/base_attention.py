"""Base class of the attention layers."""

import functools

import keras
from keras import ops

from tfnlp.functional.attention import attend, join_heads, split_heads
from tfnlp.functional.blockwise_attention import blockwise_attention
from tfnlp.functional.masks import causal_mask, combine_masks
from tfnlp.functional.memory import after_memory
from tfnlp.layers.core.base_layer import (
    BIAS_OPTIONS,
    KERNEL_OPTIONS,
    BaseLayer,
    check_sizes,
    check_states,
)
from tfnlp.quantization.fake_quantization import WEIGHT_RANGE


class BaseAttention(BaseLayer):
    """Base class of the attention layers: projections, input checks and output.

    `call` of a subclass begins with `_inputs`, adds to the scores what its paper does, and ends
    with `_attend`. Arguments by position are those of `keras.layers.MultiHeadAttention`.

    Args:
        num_heads: N, the number of heads.
        key_dim: H, the size of one head in queries and keys.
        value_dim: size of one head in the values; `key_dim` if None.
        dropout: share of attention weights dropped in training.
        use_bias: whether the projections add a bias.
        output_dim: width of the output; the width of the query if None.
        block_size: keys to attend to at a time, for long inputs; all if None.
        kernel_initializer: for the kernels.
        output_initializer: for the output's kernel; `kernel_initializer` if None.
        activity_regularizer: for what the projections of the inputs and of the output give.
        kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint,
            bias_initializer: for all kernels and biases.
    """

    OPTIONS = KERNEL_OPTIONS + BIAS_OPTIONS
    # Call arguments that are hidden states as the inputs are: a pre-norm block normalises them.
    STATES = ()

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
        kernel_initializer="glorot_uniform",
        output_initializer=None,
        activity_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(
            num_heads=num_heads,
            key_dim=key_dim,
            value_dim=value_dim,
            output_dim=output_dim,
            block_size=block_size,
        )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout={dropout} must be at least 0 and below 1.")
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.output_dim = output_dim
        self.block_size = block_size
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(output_initializer)
        self.projection_regularizer = keras.regularizers.get(activity_regularizer)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def rounded_tensors(self):
        return {"query": None, "scores": None, "weights": WEIGHT_RANGE}

    def _projection(self, units, name, shape, initializer=None, **kwargs):
        """Build a dense layer for inputs or context; `kwargs` override its default options."""
        options = {
            "use_bias": self.use_bias,
            "activity_regularizer": self.projection_regularizer,
        }
        dense = self._dense(units, name, initializer, **options | kwargs)
        dense.build(shape)
        return dense

    def _build_inputs(self, query_shape, value_shape=None, key_shape=None):
        """Build the projections of query, key and value."""
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        check_states(query=query_shape, value=value_shape, key=key_shape)
        units = self.num_heads * self.key_dim
        self.query = self._projection(units, "query", query_shape)
        self.key = self._projection(units, "key", key_shape)
        self.value = self._projection(self.num_heads * self.value_dim, "value", value_shape)

    def _build_output(self, query_shape):
        self.output_dense = self._projection(
            self.output_dim or query_shape[-1],
            "output",
            (*query_shape[:-1], self.num_heads * self.value_dim),
            self.output_initializer,
        )

    def _inputs(self, query, value, key, masks, use_causal_mask=False, memory=None):
        """Project the inputs and combine all masks into one, the first step of `call`.

        Args:
            query, value, key: as `fill_inputs` takes them.
            masks: the `query_mask`, `value_mask`, `key_mask`, `attention_mask` and `mask` of
                the call, each of which may be None.
            use_causal_mask: whether to hide every position after the query's own.
            memory: (B, M, D) to put before key and value, or None.

        Returns:
            Query (B, N, T, H), key (B, N, S, H), value (B, N, S, H'), and what may be seen, as
            `combine_masks` gives it.
        """
        value, key, attention_mask, query_mask, key_mask = fill_inputs(query, value, key, *masks)
        check_states(query=query.shape, value=value.shape, key=key.shape)
        key, value, key_mask = after_memory(memory, key, value, key_mask)
        seen = seen_keys(
            query, key, attention_mask, query_mask, key_mask, use_causal_mask, self.num_heads
        )
        return *self._project(query, key, value), seen

    def _project(self, query, key, value):
        """Project query, key and value, and split them by head."""
        pairs = ((self.query, query), (self.key, key), (self.value, value))
        return (split_heads(dense(x), self.num_heads) for dense, x in pairs)

    def _attend(
        self,
        query,
        key,
        value,
        seen,
        terms=(),
        segment_term=None,
        mapping=None,
        training=None,
        return_attention_scores=False,
        projections=(),
    ):
        """Compute scores, softmax, dropout and the output projection, the last step of `call`.

        Args:
            query: (B, N, T, H), scaled, and `_rounded`.
            key: (B, N, S, H).
            value: (B, N, S, H').
            seen: boolean, as `combine_masks` gives it, or None.
            terms: `RelativeTerm`s to add to the scores.
            segment_term: a `SegmentTerm` to add to them, or None.
            mapping: (B, P, T) by which to take predictions from positions, or None.
            training: whether dropout is on.
            return_attention_scores: also return the scores.
            projections: what to return after them.

        Returns:
            (B, T, D) or (B, P, D), or a tuple of it, the scores before mask and softmax, (B, N, T,
            S), and the projections, as asked for.
        """
        self._check_scores(return_attention_scores)
        if self.block_size:
            scores, rate = None, self.dropout if training else 0.0
            context = blockwise_attention(
                query,
                key,
                value,
                seen,
                self.block_size,
                terms,
                segment_term,
                dropout=rate,
                seed=self.dropout_layer.seed_generator.next() if rate else None,
            )
        else:
            of = self._quantizer("query"), self._quantizer_of("key")
            into = self._quantizer("scores")
            scores = self._integer_product(query, ops.swapaxes(key, -1, -2), of, into, training)
            scores = self._rounded("scores", scores)
            for term in terms if segment_term is None else (*terms, segment_term):
                scores += self._rounded(term.name, term.scores(query, key))
            of = self._quantizer("weights"), self._quantizer_of("value")
            into = None if mapping is not None else self.output_dense._quantizer("inputs")
            product = functools.partial(self._integer_product, of=of, into=into, training=training)
            how = self.dropout_layer, training, self._quantizer("weights"), product
            context = attend(scores, value, seen, *how)
        context = join_heads(context)  # (B, T, N * H')
        if mapping is not None:
            context = ops.matmul(mapping, context)  # (B, P, N * H')
        output = self.output_dense(context)
        further = [scores] * bool(return_attention_scores) + list(projections)
        return (output, *further) if further else output

    def _quantizer_of(self, name):
        """Return the `FakeQuantizer` of the "key" or "value" that attention reads, or None."""
        return self._quantizer(name) or getattr(self, name)._quantizer("outputs")

    def _check_scores(self, return_attention_scores):
        if return_attention_scores and self.block_size:
            raise ValueError(
                f"return_attention_scores=True, but block_size={self.block_size} never holds "
                "the scores; use block_size=None to have them."
            )

    def compute_output_spec(
        self,
        query,
        value=None,
        key=None,
        *masks,
        return_attention_scores=False,
        memory=None,
        return_projections=False,
        cache=None,
        **kwargs,
    ):
        self._check_scores(return_attention_scores)
        source = query if value is None else value
        lengths = [x.shape[1] for x in (memory, source) if x is not None]
        if cache is not None:
            lengths = [cache[0].shape[2]]
        by_head = query.shape[0], self.num_heads
        length, source_length = query.shape[1], add_lengths(*lengths)
        shapes = [(*query.shape[:-1], self.output_dim or query.shape[-1])]
        if return_attention_scores:
            shapes.append((*by_head, length, source_length))
        if return_projections:
            sizes = [(length, self.key_dim), (source_length, self.key_dim)]
            sizes.append((source_length, self.value_dim))
            shapes += [(*by_head, *size) for size in sizes]
        return self._specs(*shapes)

    def compute_mask(self, query, previous_mask=None, **kwargs):
        return previous_mask

    def fields(self):
        return super().fields() | {"activity_regularizer": self.projection_regularizer}


def fill_inputs(
    query,
    value=None,
    key=None,
    query_mask=None,
    value_mask=None,
    key_mask=None,
    attention_mask=None,
    mask=None,
):
    """Fill in omitted value, key and masks.

    Args:
        query: (B, T, D).
        value: (B, S, D'); the query if None.
        key: (B, S, D'); the value if None.
        query_mask: (B, T), as Keras passes it on. One of more axes is an `attention_mask`: in
            a call by position, `layer(x, x, x, mask)`, it is in this one's place.
        value_mask: (B, S); with `key_mask` both hold.
        key_mask: (B, S).
        attention_mask: as `combine_masks` takes it.
        mask: the `query_mask` where the query is the only tensor.

    Returns:
        `value`, `key`, `attention_mask`, `query_mask` and `key_mask`, the masks None where there
        are none.

    Raises:
        ValueError: if both `query_mask` and `attention_mask` are attention masks.
    """
    if query_mask is not None and len(query_mask.shape) > 2:
        if attention_mask is not None:
            raise ValueError(
                f"query_mask has shape {tuple(query_mask.shape)}, but must have 2 axes, "
                "(batch, target), beside an attention_mask."
            )
        attention_mask, query_mask = query_mask, None
    query_mask = mask if query_mask is None else query_mask
    if value is None:
        value, value_mask = query, query_mask if value_mask is None else value_mask
    if key is None:
        key = value
    if key_mask is None:
        key_mask = value_mask
    elif value_mask is not None and value_mask is not key_mask:
        key_mask = ops.logical_and(key_mask, value_mask)
    return value, key, attention_mask, query_mask, key_mask


def seen_keys(
    query,
    key,
    attention_mask=None,
    query_mask=None,
    key_mask=None,
    use_causal_mask=False,
    num_heads=1,
):
    """Combine all masks into one, in the form of `combine_masks`; None if nothing is masked."""
    seen = combine_masks(
        query.shape, key.shape, attention_mask, query_mask, key_mask, num_heads=num_heads
    )
    if not use_causal_mask:
        return seen
    causal = causal_mask(ops.shape(query)[1], ops.shape(key)[1])
    return causal if seen is None else ops.logical_and(seen, causal)


def given_or_own(name, given, own):
    """Return the shared tensor if the layer was built with one, else the layer's own.

    Raises:
        ValueError: if the shared tensor is present now but was not at build time, or vice versa.
    """
    if given is None:
        if own is None:
            raise ValueError(f"{name} was given when the layer was built, so it must be given.")
        return ops.convert_to_tensor(own)
    if own is not None:
        raise ValueError(f"{name} is given, but the layer was built with one of its own.")
    return given


def add_lengths(*lengths):
    """Return the sum of lengths, or None if one of them is unknown."""
    return None if None in lengths else sum(lengths)
