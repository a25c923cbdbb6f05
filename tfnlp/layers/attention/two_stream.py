"""Two-stream relative attention (XLNet)."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.attention import Scores
from tfnlp.functional.attention_heads import add_by_head, scaled, split_heads
from tfnlp.functional.masks import combine_masks, set_mask
from tfnlp.functional.memory import prepend_memory
from tfnlp.functional.products import times_table
from tfnlp.functional.relative_scores import query_to_position
from tfnlp.functional.segment_scores import SegmentTerm
from tfnlp.layers.attention.relative import RelativeAttention, RelativeOptions
from tfnlp.layers.core.base_layer import check_states

STREAM_MASKS = ("content_stream_mask", "query_stream_mask")


@keras.saving.register_keras_serializable("tfnlp")
class TwoStreamAttention(RelativeAttention):
    """XLNet's content and query streams over one set of weights.

    Yang et al. 2019, 'XLNet', eq. 4 (two streams), section 2.5 (relative segment encoding) and
    appendix A.2; scores as Transformer-XL has them,
    `((q_i + u) . k_j + (q_i + v) . (W_R R_{i-j}) + (q_i + b) . s_{ij}) / sqrt(H)`. In
    fine-tuning only the content stream is given.

    Args: those of `RelativeAttention`, and
        bias_initializer: for the biases u, v and b and for the segment encodings s.
        use_segments: whether there are b and s, which texts of one segment do not train.

    Call arguments: return_attention_scores, return_projections, training as in
        `MultiHeadAttention`, and
        content_stream: h, (B, T, D).
        query_stream: g, (B, T, D), or (B, P, D) with `target_mapping`; None in fine-tuning.
        target_mapping: (B, P, T), one-hot rows: the position that each prediction is of.
        memory: (B, M, D), earlier positions that both streams see, without gradient; S is M + T.
        segment_mask: (B, T, S), true where both are of one segment (`tfnlp.layers.segment_mask`).
        attention_mask: of the content stream; for both see `tfnlp.layers.permutation_masks`.
        query_attention_mask: of the query stream; `attention_mask` if None.

    Returns:
        (B, T, D), or a tuple of it, the scaled scores before mask and softmax, and the
        projections, as asked for; with a query stream a pair of each, of the content and of the
        query. The Keras mask of the query output, (B, T, D) or (B, P, D), is that of the query
        stream, or without a `target_mapping` the content stream's.

    Raises:
        ValueError: as `RelativeAttention` does, and for streams that do not fit.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=False,
        output_dim=None,
        *,
        block_size=None,
        clamp_length=None,
        position_dropout=0.0,
        bias_initializer="random_normal",
        use_segments=True,
        **kwargs: Unpack[RelativeOptions],
    ):
        kwargs |= {"output_dim": output_dim, "block_size": block_size}
        kwargs |= {"clamp_length": clamp_length, "position_dropout": position_dropout}
        kwargs |= {"bias_initializer": bias_initializer}
        super().__init__(num_heads, key_dim, value_dim, dropout, use_bias, **kwargs)
        self.use_segments = use_segments

    def build(self, content_stream_shape, **shapes):
        super().build(content_stream_shape)
        if self.use_segments:
            self.segment_bias = self._bias("segment_bias")
            table = "segment_table", (2, self.num_heads, self.key_dim)
            self.segment_table = self._weight("bias", *table, self.bias_initializer)

    def call(
        self,
        content_stream,
        query_stream=None,
        target_mapping=None,
        memory=None,
        segment_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        mask=None,
        return_projections=False,
        content_stream_mask=None,
        query_stream_mask=None,
        *,
        query_attention_mask=None,
    ):
        shapes = {"query_stream": getattr(query_stream, "shape", None)}
        check_states(content_stream=content_stream.shape, **shapes)
        stream_masks = [content_stream_mask, query_stream_mask]
        call = self._gather(
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            mask=mask,
            return_projections=return_projections,
        )
        padding = call.mask if stream_masks[0] is None else stream_masks[0]
        inputs, _, key_mask = prepend_memory(memory, content_stream, content_stream, padding)
        shapes = content_stream.shape, inputs.shape
        k = split_heads(self.key(inputs), self.num_heads)  # (B, N, S, H)
        v = split_heads(self.value(inputs), self.num_heads)  # (B, N, S, H')
        lengths = ops.shape(content_stream)[1], ops.shape(k)[2]
        r, rows = self._positions(call, *lengths)  # (N, R, H), (T + S - 1,)
        is_same = combine_masks(*shapes, segment_mask, name="segment_mask")  # (B, T, S)

        def attend(stream, name, stream_mask, mapping=None):
            mask = combine_masks(
                *shapes, stream_mask, key_mask=key_mask, name=name, num_heads=self.num_heads
            )
            q, mapping = self._queries(stream, mapping, shapes[0][1])  # (B, N, T, H)
            scaled_q = scaled(q)  # over sqrt(H)
            by_position = add_by_head(scaled_q, scaled(self.position_bias))
            # (q_i + u) . k_j
            scores = Scores(add_by_head(scaled_q, scaled(self.content_bias)), k)
            # (q_i + v) . r_{i-j}
            scores += query_to_position(by_position, r, rows)
            if is_same is not None:  # (q_i + b) . s_{ij}
                scores += SegmentTerm(self._by_segment(by_position), is_same)
            return self._attend(call, scores, (q, k, v), mask, mapping)

        # Eq. 4: the content stream h sees itself, the query stream g only what comes before.
        content = attend(content_stream, "attention_mask", call.attention_mask)
        if query_stream is None:
            return content
        mask = call.attention_mask if query_attention_mask is None else query_attention_mask
        query = attend(query_stream, "query_attention_mask", mask, target_mapping)
        return _pairs(content, query, stream_masks, target_mapping)

    def _queries(self, stream, mapping, length):
        """Compute the queries of a stream at all positions, (B, N, T, H), and cast its mapping."""
        q = self.query(stream)
        if mapping is not None:
            mapping = ops.cast(mapping, q.dtype)  # (B, P, T)
            q = ops.matmul(ops.swapaxes(mapping, 1, 2), q)  # (B, T, N * H)
        if None not in (length, q.shape[1]) and q.shape[1] != length:
            raise ValueError(f"query_stream has {q.shape[1]} positions, content_stream {length}.")
        return split_heads(q, self.num_heads), mapping

    def _by_segment(self, by_position):
        """Compute (q_i + b) . s, (B, N, T, 2), as (q_i + v) . s + (b - v) . s: q has 2 uses."""
        table = ops.transpose(self.segment_table, (1, 2, 0))  # (N, H, 2)
        biases = scaled(self.segment_bias) - scaled(self.position_bias)
        return times_table(by_position, table) + ops.matmul(biases[:, None], table)

    def compute_output_spec(
        self,
        content_stream,
        query_stream=None,
        target_mapping=None,
        memory=None,
        *masks,
        **options,
    ):
        spec = super().compute_output_spec
        content = spec(content_stream, memory=memory, **options)
        if query_stream is None:
            return content
        query = spec(query_stream)
        if isinstance(content, tuple):
            # Tensors of its own: a functional model takes one that it has twice for one output.
            query = (query, *spec(content_stream, memory=memory, **options)[1:])
        stream_masks = [options.get(name) for name in STREAM_MASKS]
        return _pairs(content, query, stream_masks, target_mapping)


def _pairs(content, query, stream_masks, target_mapping):
    """Return each result of the content stream beside that of the query stream.

    The query output has the Keras mask of its stream, or that of the content at the same places.
    """
    content_mask, mask = stream_masks
    mask = content_mask if mask is None and target_mapping is None else mask
    if not isinstance(content, tuple):
        return content, set_mask(query, mask)
    set_mask(query[0], mask)
    return tuple(zip(content, query, strict=True))
