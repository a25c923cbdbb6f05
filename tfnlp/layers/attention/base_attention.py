"""Base class of the attention layers, and the arguments of their calls."""

import dataclasses
from typing import Unpack

from keras import ops

from tfnlp.functional.attention import blockwise_attention, fused_attention
from tfnlp.functional.attention_heads import join_heads, split_heads
from tfnlp.functional.local_attention import local_attention, with_window
from tfnlp.functional.masks import causal_mask, combine_masks
from tfnlp.functional.memory import prepend_memory
from tfnlp.functional.products import plain_product
from tfnlp.functional.shapes import check_sizes
from tfnlp.layers.core.base_layer import BaseLayer, check_states
from tfnlp.layers.core.weight_options import AttentionOptions
from tfnlp.quantization.fake_quantization import WEIGHT_RANGE


@dataclasses.dataclass
class AttentionCall:
    """Masks, `training` and the results asked for in one call of an attention layer.

    Args:
        query_mask: (B, T), as Keras passes it on. One of more axes is an `attention_mask`: in
            a call by position, `layer(x, x, x, mask)`, it is in this one's place.
        value_mask: (B, S); with `key_mask` both hold.
        key_mask: (B, S).
        attention_mask: as `combine_masks` takes it.
        mask: the `query_mask` where the query is the only tensor.
        use_causal_mask: whether to hide every position after the query's own.
        training: whether dropout is on.
        return_attention_scores, return_projections: results beside the output.
        product: the `products` of the layer for this call.

    Raises:
        ValueError: if both `query_mask` and `attention_mask` are attention masks.
    """

    query_mask: object = None
    value_mask: object = None
    key_mask: object = None
    attention_mask: object = None
    return_attention_scores: bool = False
    training: bool | None = None
    use_causal_mask: bool = False
    mask: object = None
    return_projections: bool = False
    product: object = plain_product

    def __post_init__(self):
        if self.query_mask is not None and len(self.query_mask.shape) > 2:
            if self.attention_mask is not None:
                raise ValueError(
                    f"query_mask has shape {tuple(self.query_mask.shape)}, but must have 2 axes, "
                    "(batch, target), beside an attention_mask."
                )
            self.attention_mask, self.query_mask = self.query_mask, None
        if self.query_mask is None:
            self.query_mask = self.mask

    def inputs(self, query, value=None, key=None, memory=None, num_heads=1):
        """Fill in omitted value and key, put a memory before them, and combine all masks.

        Args:
            query: (B, T, D).
            value: (B, L, D'); the query if None.
            key: (B, L, D'); the value if None.
            memory: (B, M, D'), or None.
            num_heads: N.

        Returns:
            Key and value (B, S, D') with S = M + L, and the mask as `combine_masks` gives it.
        """
        value_mask, key_mask = self.value_mask, self.key_mask
        if value is None:
            value, value_mask = query, self.query_mask if value_mask is None else value_mask
        key = value if key is None else key
        check_states(query=query.shape, value=value.shape, key=key.shape)
        if key_mask is None:
            key_mask = value_mask
        elif value_mask is not None and value_mask is not key_mask:
            key_mask = ops.logical_and(key_mask, value_mask)
        key, value, key_mask = prepend_memory(memory, key, value, key_mask)
        masks = self.attention_mask, self.query_mask, key_mask
        mask = combine_masks(query.shape, key.shape, *masks, num_heads=num_heads)
        if self.use_causal_mask:
            causal = causal_mask(ops.shape(query)[1], ops.shape(key)[1])
            mask = causal if mask is None else ops.logical_and(mask, causal)
        return key, value, mask


class BaseAttention(BaseLayer):
    """Base class of the attention layers: projections, masks and output.

    `call` of a subclass gathers its arguments by `_gather`, projects the inputs by `_inputs`,
    forms the `Scores` of its paper, and ends with `_attend`. Arguments by position are those of
    `keras.layers.MultiHeadAttention`.

    Args:
        num_heads: N, the number of heads.
        key_dim: H, the size of one head in queries and keys.
        value_dim: size of one head in the values; `key_dim` if None.
        dropout: share of attention weights dropped in training.
        use_bias: whether the projections add a bias.
        output_dim: width of the output; the width of the query if None.
        block_size: keys to attend to at a time, for long inputs (Rabe & Staats 2021); the
            (T, S) scores are never held then. All at once if None.
        kernel_initializer: for the kernels.
        output_initializer: for the output's kernel; `kernel_initializer` if None.
        activity_regularizer: for what the projections of the inputs and of the output give.
        kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint,
            bias_initializer: for all kernels and biases.
    """

    # Call arguments that are hidden states as the inputs are: a pre-norm block normalises them.
    STATES = ()
    # Distance of the farthest key that a query sees, of `MultiHeadAttention`.
    window = None
    # False where texts of unknown length are short: a mask then costs less than bands.
    by_bands = True
    # Function that `tfnlp.inspection` has each call's tensors from, as `_attend` takes them.
    observer = None

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
        **kwargs: Unpack[AttentionOptions],
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.output_dim = output_dim
        self.block_size = block_size
        # Of the projections, not of the layer's output, as in Keras.
        self.projection_regularizer, self.activity_regularizer = self.activity_regularizer, None
        sizes = {"num_heads": num_heads, "key_dim": key_dim, "value_dim": value_dim}
        check_sizes(**sizes, output_dim=output_dim, block_size=block_size)
        self.dropout_layer = self._dropout_layer(dropout)

    def fields(self):
        return super().fields() | {"activity_regularizer": self.projection_regularizer}

    def rounded_tensors(self):
        rounded = {"query": None, "scores": None, "weights": WEIGHT_RANGE}
        rounded |= {"key": "key.outputs", "value": "value.outputs"}
        return rounded | {"context": "output_dense.inputs"}

    def _projection(self, units, name, shape, initializer=None, **kwargs):
        """Build a dense layer for inputs or context; `kwargs` override its default options."""
        options = {
            "use_bias": self.use_bias,
            "activity_regularizer": self.projection_regularizer,
        }
        dense = self._dense(units, name, initializer, **options | kwargs)
        dense.build(shape)
        return dense

    def _position_projection(self, name, width, **options):
        """Build the projection of a table, whose activity, of no input, is not regularised."""
        options["activity_regularizer"] = None
        return self._projection(self.num_heads * self.key_dim, name, (None, width), **options)

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

    def _gather(self, **options):
        """Return the `AttentionCall` of a call's options."""
        return AttentionCall(**options, product=self.products(options.get("training")))

    def _inputs(self, call, query, value=None, key=None, memory=None):
        """Project the inputs and combine all masks into one.

        Args:
            call: the `AttentionCall`.
            query, value, key, memory: as `AttentionCall.inputs` takes them.

        Returns:
            Query (B, N, T, H), key (B, N, S, H), value (B, N, S, H'), and the mask as
            `combine_masks` gives it.
        """
        key, value, mask = call.inputs(query, value, key, memory, self.num_heads)
        return *self._project(query, key, value), mask

    def _project(self, query, key, value):
        """Project query, key and value, and split them by head."""
        pairs = ((self.query, query), (self.key, key), (self.value, value))
        return tuple(split_heads(dense(x), self.num_heads) for dense, x in pairs)

    def _attend(self, call, scores, projections, mask, mapping=None):
        """Compute softmax(scores) . value, with dropout, and the output projection.

        Args:
            call: the `AttentionCall`.
            scores: `Scores`.
            projections: query (B, N, T, H), key (B, N, S, H) and value (B, N, S, H').
            mask: boolean, as `combine_masks` gives it, or None.
            mapping: (B, P, T) by which to take predictions from positions, or None.

        Returns:
            The output (B, T, D) or (B, P, D), or a tuple of it, the scores before mask and
            softmax, (B, N, T, S), and the projections, as asked for.
        """
        self._check_scores(call.return_attention_scores)
        value = projections[-1]
        needs_all = self.observer is not None or call.return_attention_scores
        by_bands = self.window and self.by_bands and not needs_all
        if self.window and not by_bands:
            mask = with_window(mask, ops.shape(value)[2], self.window)
        if self.observer is not None:
            self.observer(self, call, scores, projections, mask)
        dropout = self.dropout_layer if self.dropout and call.training else None
        if by_bands:
            arguments = (scores, value, mask, dropout, call.product)
            context = local_attention(*arguments, window=self.window)
        elif self.block_size:
            options = {"block_size": self.block_size, "training": bool(call.training)}
            context = blockwise_attention(scores, value, mask, dropout, **options)
        else:
            scores = scores.compute(call.product)  # (B, N, T, S)
            options = {"name": "context" if mapping is None else "mapped_context"}
            context = fused_attention(scores, value, mask, dropout, call.product, **options)
        context = join_heads(context)  # (B, T, N * H')
        if mapping is not None:
            context = ops.matmul(mapping, context)  # (B, P, N * H')
        results = (self.output_dense(context),)
        results += (scores,) if call.return_attention_scores else ()
        results += projections if call.return_projections else ()
        return results if len(results) > 1 else results[0]

    def _check_scores(self, return_attention_scores):
        if return_attention_scores and self.block_size:
            raise ValueError(
                f"return_attention_scores=True, but block_size={self.block_size} never holds "
                "the scores; use block_size=None to have them."
            )

    def compute_output_spec(self, query, value=None, key=None, *masks, cache=None, **options):
        self._check_scores(options.get("return_attention_scores"))
        memory, source = options.get("memory"), query if value is None else value
        lengths = [x.shape[1] for x in (memory, source) if x is not None]
        if cache is not None:
            lengths = [cache[0].shape[2]]
        length, source_length = query.shape[1], None if None in lengths else sum(lengths)
        by_head = query.shape[0], self.num_heads
        shapes = [(*query.shape[:-1], self.output_dim or query.shape[-1])]
        if options.get("return_attention_scores"):
            shapes.append((*by_head, length, source_length))
        if options.get("return_projections"):
            key_shape = (*by_head, source_length, self.key_dim)
            value_shape = (*by_head, source_length, self.value_dim)
            shapes += [(*by_head, length, self.key_dim), key_shape, value_shape]
        return self._specs(*shapes)
