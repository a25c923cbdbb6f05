"""Base class of the attention layers."""

import keras
from keras import ops

from tfnlp.functional.attention import blockwise_attention, fused_attention
from tfnlp.functional.attention_heads import join_heads, split_heads
from tfnlp.layers.attention.attention_call import AttentionCall
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
        return {
            "query": None,
            "scores": None,
            "weights": WEIGHT_RANGE,
            "key": "key.outputs",
            "value": "value.outputs",
            "context": "output_dense.inputs",
        }

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

    def _gather(self, *masks, training=None, **options):
        """Return the `AttentionCall` of a call's masks, `training` and options."""
        product = self.products(training)
        return AttentionCall(*masks, training=training, product=product, **options)

    def _inputs(self, call, query, value=None, key=None, memory=None):
        """Project the inputs and combine all masks into one.

        Args:
            call: the `AttentionCall`.
            query, value, key, memory: as `AttentionCall.fill` takes them.

        Returns:
            Query (B, N, T, H), key (B, N, S, H), value (B, N, S, H'), and the mask as
            `combine_masks` gives it.
        """
        key, value, key_mask = call.fill(query, value, key, memory)
        mask = call.combine_masks(query, key, key_mask, self.num_heads)
        return *self._project(query, key, value), mask

    def _project(self, query, key, value):
        """Project query, key and value, and split them by head."""
        pairs = ((self.query, query), (self.key, key), (self.value, value))
        return (split_heads(dense(x), self.num_heads) for dense, x in pairs)

    def _attend(self, call, scores, value, mask, mapping=None):
        """Compute softmax(scores) . value, with dropout, and the output projection.

        Args:
            call: the `AttentionCall`.
            scores: `Scores`.
            value: (B, N, S, H').
            mask: boolean, as `combine_masks` gives it, or None.
            mapping: (B, P, T) by which to take predictions from positions, or None.

        Returns:
            The output (B, T, D) or (B, P, D), and the scores before mask and softmax, (B, N, T,
            S), or None with `block_size`.
        """
        self._check_scores(call.return_attention_scores)
        dropout = self.dropout_layer if self.dropout and call.training else None
        if self.block_size:
            options = {"block_size": self.block_size, "training": bool(call.training)}
            context = blockwise_attention(scores, value, mask, dropout, **options)
            scores = None
        else:
            scores = scores.compute(call.product)  # (B, N, T, S)
            name = "context" if mapping is None else "mapped_context"
            context = fused_attention(
                scores, value, mask, dropout, product=call.product, name=name
            )
        context = join_heads(context)  # (B, T, N * H')
        if mapping is not None:
            context = ops.matmul(mapping, context)  # (B, P, N * H')
        return self.output_dense(context), scores

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


def select_weight(name, shared, weight):
    """Return the shared tensor if the layer was built with one, else the layer's weight.

    Raises:
        ValueError: if the shared tensor is present now but was not at build time, or vice versa.
    """
    if shared is None:
        if weight is None:
            raise ValueError(f"{name} was given when the layer was built, so it must be given.")
        return ops.convert_to_tensor(weight)
    if weight is not None:
        raise ValueError(f"{name} is given, but the layer was built with one of its own.")
    return shared


def add_lengths(*lengths):
    """Return the sum of lengths, or None if one of them is unknown."""
    return None if None in lengths else sum(lengths)
