"""The block of XLNet in pretraining: two streams through one set of weights."""

import keras

from tfnlp.functional.masks import set_mask
from tfnlp.functional.recompute import recomputable
from tfnlp.layers.attention.streams import query_stream_mask_of
from tfnlp.layers.attention.two_stream import TwoStreamAttention
from tfnlp.layers.blocks.encoder_block import EncoderBlock
from tfnlp.layers.core.base_layer import check_states


@keras.saving.register_keras_serializable("tfnlp")
class TwoStreamBlock(EncoderBlock):
    """`EncoderBlock` for XLNet's content and query streams.

    Yang et al. 2019, 'XLNet', section 2.3 and appendix A.2. Its weights are those of an
    `EncoderBlock` with a `TwoStreamAttention`, which is all that fine-tuning needs.

    Args:
        num_heads, intermediate_dim, activation, dropout, attention_dropout, norm_first,
            layer_norm_epsilon, kernel_initializer, feed_forward_dropout, output_initializer,
            dropout_after, block_size, kernel_regularizer, bias_regularizer, kernel_constraint,
            bias_constraint, bias_initializer: as `EncoderBlock` takes them.
        attention: a `TwoStreamAttention`; one of `num_heads` if None.

    Call arguments:
        content_stream: h, (B, T, D).
        query_stream: g, (B, T, D), or (B, P, D) with `target_mapping`.
        target_mapping, memory, segment_mask, attention_mask, query_attention_mask: as
            `TwoStreamAttention` takes them.
        return_attention_scores: also return the scores of each stream before the softmax.

    Returns:
        A pair of the streams, as they came; with scores a pair of these and of the scores, each
        (B, N, T, S). The Keras mask of the query stream is its own, or without a
        `target_mapping` that of the content stream.

    Raises:
        ValueError: as `EncoderBlock` and `TwoStreamAttention` do.
    """

    ATTENTION = TwoStreamAttention

    def build(self, content_stream_shape, **shapes):
        check_states(content_stream=content_stream_shape)
        super().build(content_stream_shape)

    @recomputable
    def call(
        self,
        content_stream,
        query_stream,
        target_mapping=None,
        memory=None,
        segment_mask=None,
        attention_mask=None,
        query_attention_mask=None,
        return_attention_scores=False,
        training=None,
        content_stream_mask=None,
        query_stream_mask=None,
    ):
        streams = content_stream, query_stream
        attended = self.attention(
            *(self._before("attention", x) for x in streams),
            target_mapping=target_mapping,
            memory=None if memory is None else self._before("attention", memory),
            segment_mask=segment_mask,
            attention_mask=attention_mask,
            query_attention_mask=query_attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            content_stream_mask=content_stream_mask,
        )
        attended, scores = attended if return_attention_scores else (attended, None)
        content, query = (
            self._rest(x, y, training) for x, y in zip(streams, attended, strict=True)
        )
        mask = query_stream_mask_of(content_stream_mask, query_stream_mask, target_mapping)
        outputs = content, set_mask(query, mask)
        return (outputs, scores) if return_attention_scores else outputs

    def compute_output_spec(
        self,
        content_stream,
        query_stream,
        target_mapping=None,
        memory=None,
        segment_mask=None,
        attention_mask=None,
        query_attention_mask=None,
        return_attention_scores=False,
        content_stream_mask=None,
        query_stream_mask=None,
        **kwargs,
    ):
        content, query = self._specs(content_stream.shape, query_stream.shape)
        mask = query_stream_mask_of(content_stream_mask, query_stream_mask, target_mapping)
        outputs = content, set_mask(query, mask)
        if not return_attention_scores:
            return outputs
        _, scores = self.attention.compute_output_spec(
            content_stream, query_stream, memory=memory, return_attention_scores=True
        )
        return outputs, scores
