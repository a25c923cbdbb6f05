"""Two-stream relative attention (XLNet)."""

import keras
from keras import ops

from tfnlp.functional.attention import Scores
from tfnlp.functional.attention_heads import add_by_head, scaled, split_heads
from tfnlp.functional.masks import combine_masks
from tfnlp.functional.memory import prepend_memory
from tfnlp.functional.products import times_table
from tfnlp.functional.relative_scores import query_to_position
from tfnlp.functional.segment_scores import SegmentTerm
from tfnlp.layers.attention.relative import RelativeAttention
from tfnlp.layers.attention.streams import check_streams, pair_streams, query_stream_mask_of
from tfnlp.layers.core.base_layer import check_states


@keras.saving.register_keras_serializable("tfnlp")
class TwoStreamAttention(RelativeAttention):
    """XLNet's content and query streams over one set of weights.

    Yang et al. 2019, 'XLNet', eq. 4 (two streams), section 2.5 (relative segment encoding) and
    appendix A.2; scores as Transformer-XL has them,
    `((q_i + u) . k_j + (q_i + v) . (W_R R_{i-j}) + (q_i + b) . s_{ij}) / sqrt(H)`. In
    fine-tuning only the content stream is given.

    Args:
        num_heads, key_dim, value_dim, dropout, use_bias, output_dim, block_size,
            kernel_initializer, clamp_length, position_dropout, output_initializer,
            activity_regularizer, kernel_regularizer, bias_regularizer, kernel_constraint,
            bias_constraint: as `RelativeAttention` takes them.
        bias_initializer: for the biases u, v and b and for the segment encodings s; other biases
            start at zero.
        use_segments: whether there are b and s; without, `segment_mask` cannot be given, and no
            weight is left without a gradient where texts have one segment.

    Call arguments:
        content_stream: h, (B, T, D).
        query_stream: g, (B, T, D), or (B, P, D) with `target_mapping`; None in fine-tuning.
        target_mapping: (B, P, T), one-hot rows: the position that each prediction is of.
        memory: (B, M, D), earlier positions that both streams see, without gradient; S is
            M + T (`tfnlp.layers.update_memory` keeps it, with its `reuse_length`).
        segment_mask: (B, T, S), true where query and key are of one segment
            (`tfnlp.layers.segment_mask`); no segments if None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where the content
            stream may see S (`tfnlp.layers.permutation_masks`).
        query_attention_mask: likewise for the query stream; `attention_mask` if None.
        return_attention_scores: also return the scores, (B, N, T, S), of each stream.
        training: whether dropout is on.
        return_projections: also return query, key and value of the content stream, as
            `MultiHeadAttention` does; without a query stream alone.

    Returns:
        The content output (B, T, D) where there is no query stream, else a pair of it and the
        query output, (B, T, D) or (B, P, D). With scores, a pair of these and the scaled scores
        before mask and softmax, one tensor or a pair likewise; then the projections where they
        are asked for. The Keras mask of the query
        output is that of the query stream, or without a `target_mapping` the content stream's.

    Raises:
        ValueError: for sizes below 1, an odd D, masks, a memory or a target mapping that do not
            fit, where the scores are asked for with `block_size`, the projections with a query
            stream, and a segment mask without segments.
    """

    def __init__(self, *args, use_segments=True, **kwargs):
        super().__init__(*args, **kwargs)
        self.use_segments = use_segments

    def build(self, content_stream_shape, **shapes):
        check_states(content_stream=content_stream_shape)
        self._build_inputs(content_stream_shape)
        self._build_position(content_stream_shape, "content_stream")
        self._build_output(content_stream_shape)
        names = ("content_bias", "position_bias", "segment_bias")
        for name in names if self.use_segments else names[:2]:
            setattr(self, name, self._build_bias(name))
        if self.use_segments:
            shape = (2, self.num_heads, self.key_dim)
            self.segment_table = self._weight(
                "bias", "segment_table", shape, self.bias_initializer
            )

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
        return_projections=False,
    ):
        check_streams(content_stream, query_stream, target_mapping)
        self._check_options(query_stream, segment_mask, return_projections)
        mask = mask if content_stream_mask is None else content_stream_mask
        inputs, _, key_mask = prepend_memory(memory, content_stream, content_stream, mask)
        shapes = content_stream.shape, inputs.shape
        k = split_heads(self.key(inputs), self.num_heads)  # (B, N, S, H)
        v = split_heads(self.value(inputs), self.num_heads)  # (B, N, S, H')
        lengths = ops.shape(content_stream)[1], ops.shape(inputs)[1]
        r, rows = self._positions(*lengths, False, training)  # (N, R, H), (T + S - 1,)
        is_same = combine_masks(*shapes, segment_mask, name="segment_mask")  # (B, T, S)
        call = self._gather(
            training=training,
            return_attention_scores=return_attention_scores,
            return_projections=return_projections,
        )

        def attend(stream, name, stream_mask, mapping=None):
            mask = combine_masks(
                *shapes, stream_mask, key_mask=key_mask, name=name, num_heads=self.num_heads
            )
            q, mapping = self._queries(stream, mapping)  # (B, N, T, H)
            scaled_q = scaled(q)  # over sqrt(H)
            by_position = add_by_head(scaled_q, scaled(self.position_bias))
            # (q_i + u) . k_j
            scores = Scores(add_by_head(scaled_q, scaled(self.content_bias)), k)
            # (q_i + v) . r_{i-j}
            scores += query_to_position(by_position, r, rows)
            if is_same is not None:  # (q_i + b) . s_{ij}
                scores += SegmentTerm(self._by_segment(by_position), is_same)
            output, scores = self._attend(call, scores, v, mask, mapping)
            return call.results(output, scores, q, k, v)

        # Eq. 4: the content stream h sees itself, the query stream g only what comes before.
        content = attend(content_stream, "attention_mask", attention_mask)
        if query_stream is None:
            return content
        name = "query_attention_mask"
        if query_attention_mask is None:
            query_attention_mask = attention_mask
        query = attend(query_stream, name, query_attention_mask, target_mapping)
        query_mask = query_stream_mask_of(mask, query_stream_mask, target_mapping)
        return pair_streams(content, query, query_mask, return_attention_scores)

    def _check_options(self, query_stream, segment_mask, return_projections):
        if return_projections and query_stream is not None:
            raise ValueError(
                "return_projections=True is of the content stream; leave query_stream out."
            )
        if segment_mask is not None and not self.use_segments:
            raise ValueError("segment_mask is given, but use_segments=False; leave one out.")

    def _queries(self, stream, mapping):
        """Compute the queries of a stream at all positions, (B, N, T, H), and cast its mapping."""
        q = self.query(stream)
        if mapping is not None:
            mapping = ops.cast(mapping, q.dtype)  # (B, P, T)
            q = ops.matmul(ops.swapaxes(mapping, 1, 2), q)  # (B, T, N * H)
        return split_heads(q, self.num_heads), mapping

    def _by_segment(self, by_position):
        """Compute (q_i + b) . s, (B, N, T, 2), from queries that include the position bias.

        (q + b) s is (q + v) s + (b - v) s: so the queries have two uses, not three. Of three
        gradients TensorFlow takes first whichever nothing else reads any more, so that their sum,
        and with it a training, would depend on how threads run.
        """
        table = ops.transpose(self.segment_table, (1, 2, 0))  # (N, H, 2)
        biases = scaled(self.segment_bias) - scaled(self.position_bias)
        return times_table(by_position, table) + ops.matmul(biases[:, None], table)

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
        mask=None,
        content_stream_mask=None,
        query_stream_mask=None,
        return_projections=False,
        **kwargs,
    ):
        content = super().compute_output_spec(
            content_stream,
            return_attention_scores=return_attention_scores,
            memory=memory,
            return_projections=return_projections,
        )
        if query_stream is None:
            return content
        query = super().compute_output_spec(query_stream)
        if return_attention_scores:
            query = query, content[1]
        mask = mask if content_stream_mask is None else content_stream_mask
        query_mask = query_stream_mask_of(mask, query_stream_mask, target_mapping)
        return pair_streams(content, query, query_mask, return_attention_scores)
