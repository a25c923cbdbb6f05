"""Two-stream relative attention (XLNet)."""

import keras
from keras import ops

from tfnlp.layers.attention.base import BaseAttention
from tfnlp.layers.attention.dot_product import add_by_head, scaled, split_heads
from tfnlp.layers.attention.memory import check_memory
from tfnlp.layers.attention.relative import relative_positions
from tfnlp.layers.attention.relative_scores import RelativeTerm
from tfnlp.layers.attention.segment_scores import SegmentTerm
from tfnlp.layers.core.base_layer import KERNEL_OPTIONS
from tfnlp.layers.core.masks import combine_masks, set_mask, with_memory


@keras.saving.register_keras_serializable("tfnlp")
class TwoStreamAttention(BaseAttention):
    """XLNet's content and query streams over one set of weights.

    Yang et al. 2019, 'XLNet', eq. 4 (two streams), section 2.5 (relative segment encoding) and
    appendix A.2; scores as Transformer-XL has them,
    `((q_i + u) . k_j + (q_i + v) . (W_R R_{i-j}) + (q_i + b) . s_{ij}) / sqrt(H)`. In
    fine-tuning only the content stream is given.

    Args:
        num_heads: N, the number of heads.
        key_dim: H, the size of one head in queries and keys.
        value_dim: size of one head in the values; `key_dim` where None.
        dropout: share of attention weights dropped in training.
        use_bias: whether query, key, value and output projections add a bias; not in the paper.
        output_dim: width of the output; the width of the content stream where None.
        block_size: keys to attend to at a time, for long inputs (Rabe & Staats 2021); the
            (T, S) scores are never held then.
        kernel_initializer: for the kernels.
        clamp_length: the farthest distance that is told apart; any where None.
        position_dropout: share of the sinusoids dropped in training.
        bias_initializer: for the biases u, v and b and for the segment encodings s; other biases
            start at zero.
        output_initializer, activity_regularizer, kernel_regularizer, bias_regularizer,
            kernel_constraint, bias_constraint: as `MultiHeadAttention` takes them.

    Call arguments:
        content_stream: h, (B, T, D).
        query_stream: g, (B, T, D), or (B, P, D) with `target_mapping`; None in fine-tuning.
        target_mapping: (B, P, T), one-hot rows: the position that each prediction is of.
        memory: (B, M, D), earlier positions that both streams see, without gradient; S is
            M + T (`tfnlp.layers.update_memory` keeps it, with its `reuse_length`).
        segment_mask: (B, T, S), true where query and key are of one segment
            (`tfnlp.layers.segment_mask`); no segments where None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where the content
            stream may see S (`tfnlp.layers.permutation_masks`).
        query_attention_mask: likewise for the query stream; `attention_mask` where None.
        return_attention_scores: also return the scores, (B, N, T, S), of each stream.
        training: whether dropout is on.

    Returns:
        The content output (B, T, D) where there is no query stream, else a pair of it and the
        query output, (B, T, D) or (B, P, D). With scores, a pair of these and the scaled scores
        before mask and softmax, one tensor or a pair likewise. The Keras mask of the query
        output is that of the query stream, or without a `target_mapping` the content stream's.

    Raises:
        ValueError: for sizes below 1, an odd D, masks, a memory or a target mapping that do not
            fit, and where the scores are asked for with `block_size`.
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

    def build(self, content_stream_shape, **shapes):
        if content_stream_shape[-1] % 2:
            raise ValueError(
                f"content_stream has width {content_stream_shape[-1]}, but sinusoids need an "
                "even one."
            )
        units = self.num_heads * self.key_dim
        value_units = self.num_heads * self.value_dim
        self.query = self._projection(units, "query", content_stream_shape)
        self.key = self._projection(units, "key", content_stream_shape)
        self.value = self._projection(value_units, "value", content_stream_shape)
        self.position = self._projection(
            units,
            "position",
            content_stream_shape,
            use_bias=False,
            activity_regularizer=None,  # of no input's activity
        )
        self._build_output(content_stream_shape)
        for name, shape in (
            ("content_bias", (self.num_heads, self.key_dim)),
            ("position_bias", (self.num_heads, self.key_dim)),
            ("segment_bias", (self.num_heads, self.key_dim)),
            ("segment_table", (2, self.num_heads, self.key_dim)),
        ):
            setattr(self, name, self._weight("bias", name, shape, self.bias_initializer))

    def call(
        self,
        content_stream,
        query_stream=None,
        target_mapping=None,
        memory=None,
        segment_mask=None,
        attention_mask=None,
        query_attention_mask=None,
        return_attention_scores=False,
        training=None,
        mask=None,
        content_stream_mask=None,
        query_stream_mask=None,
    ):
        self._check_scores(return_attention_scores)
        content_mask = mask if content_stream_mask is None else content_stream_mask
        query_mask = query_stream_mask_of(content_mask, query_stream_mask, target_mapping)
        _check_streams(content_stream, query_stream, target_mapping)
        inputs = content_stream  # (B, S, D)
        if memory is not None:
            check_memory(memory, content_stream.shape)
            inputs = ops.concatenate([ops.stop_gradient(memory), content_stream], axis=1)
            if content_mask is not None:
                content_mask = with_memory(content_mask, ops.shape(memory)[1])
        k = split_heads(self.key(inputs), self.num_heads)  # (B, N, S, H)
        v = split_heads(self.value(inputs), self.num_heads)  # (B, N, S, H')
        if segment_mask is not None:
            shape = (content_stream.shape, inputs.shape)
            segment_mask = combine_masks(*shape, segment_mask, name="segment_mask")

        length, source_length = ops.shape(content_stream)[1], ops.shape(inputs)[1]
        positions = relative_positions(self, length, source_length, False, training)

        def attend(stream, allowed, mapping=None, name="attention_mask"):
            q = self.query(stream)
            if mapping is not None:
                mapping = ops.cast(mapping, q.dtype)  # (B, P, T)
                q = ops.matmul(ops.swapaxes(mapping, 1, 2), q)  # (B, T, N * H)
            q = scaled(split_heads(q, self.num_heads))  # (B, N, T, H)
            terms = [RelativeTerm(add_by_head(q, scaled(self.position_bias)), *positions)]
            segments = None if segment_mask is None else self._segment_term(q, segment_mask)
            seen = combine_masks(
                content_stream.shape,
                inputs.shape,
                allowed,
                key_mask=content_mask,
                name=name,
                num_heads=self.num_heads,
            )
            q = add_by_head(q, scaled(self.content_bias))
            return self._attend(q, k, v, seen, terms, segments, training, mapping)

        content, scores = attend(content_stream, attention_mask)
        if query_stream is None:
            return (content, scores) if return_attention_scores else content
        if query_attention_mask is None:
            query_attention_mask = attention_mask
        query, query_scores = attend(
            query_stream, query_attention_mask, target_mapping, "query_attention_mask"
        )
        outputs = content, set_mask(query, query_mask)
        return (outputs, (scores, query_scores)) if return_attention_scores else outputs

    def _segment_term(self, query, segment_mask):
        q = add_by_head(query, scaled(self.segment_bias))  # (B, N, T, H)
        table = ops.transpose(self.segment_table, (1, 2, 0))  # (N, H, 2)
        by_segment = ops.matmul(q, table)  # (B, N, T, 2): same, different
        return SegmentTerm(by_segment, segment_mask)

    def compute_output_spec(
        self,
        content_stream,
        query_stream=None,
        target_mapping=None,
        memory=None,
        segment_mask=None,
        attention_mask=None,
        query_attention_mask=None,
        return_attention_scores=False,
        **kwargs,
    ):
        length = content_stream.shape[1]
        source = length
        if memory is not None:
            known = None not in (length, memory.shape[1])
            source = length + memory.shape[1] if known else None
        content = self._output_spec(content_stream, source, return_attention_scores)
        if query_stream is None:
            return content
        query = self._output_spec(query_stream, source)
        if not return_attention_scores:
            return content, query
        content, scores = content
        return (content, query), (scores, scores)

    def compute_mask(self, content_stream, previous_mask=None, **kwargs):
        return previous_mask

    def get_config(self):
        return super().get_config() | {
            "clamp_length": self.clamp_length,
            "position_dropout": self.position_dropout,
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }


def query_stream_mask_of(content_mask, query_mask, target_mapping):
    """The Keras mask of the query stream: its own, or that of the content at the same positions.

    With a `target_mapping` it has other positions than the content.
    """
    return content_mask if query_mask is None and target_mapping is None else query_mask


def _check_streams(content_stream, query_stream, target_mapping):
    content = tuple(content_stream.shape)
    if query_stream is None:
        if target_mapping is not None:
            raise ValueError("target_mapping is given, but there is no query_stream.")
        return
    query = tuple(query_stream.shape)
    if query[-1] != content[-1]:
        raise ValueError(
            f"query_stream has shape {query}, but its width must be that of content_stream, "
            f"{content[-1]}."
        )
    due = content[1]
    if target_mapping is not None:
        shape = tuple(target_mapping.shape)
        for axis, length in ((1, query[1]), (2, content[1])):
            if len(shape) != 3 or (None not in (shape[axis], length) and shape[axis] != length):
                raise ValueError(
                    f"target_mapping has shape {shape}, but must be (batch, predictions, "
                    f"positions), here ({content[0]}, {query[1]}, {content[1]})."
                )
        due = None
    if None not in (due, query[1]) and query[1] != due:
        raise ValueError(
            f"query_stream has shape {query}, but without target_mapping its length must be "
            f"that of content_stream, {due}."
        )
