"""The block of XLNet in pretraining: two streams through one set of weights."""

import keras

from tfnlp.functional.masks import set_mask
from tfnlp.functional.recompute import recomputable
from tfnlp.layers.attention.two_stream import TwoStreamAttention
from tfnlp.layers.blocks.encoder_block import EncoderBlock


@keras.saving.register_keras_serializable("tfnlp")
class TwoStreamBlock(EncoderBlock):
    """`EncoderBlock` for XLNet's content and query streams.

    Yang et al. 2019, 'XLNet', section 2.3 and appendix A.2. Its weights are those of an
    `EncoderBlock` with a `TwoStreamAttention`, which is all that fine-tuning needs.

    Args: those of `EncoderBlock`, and
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
            query_stream_mask=query_stream_mask,
        )
        scores = None
        if return_attention_scores:
            attended, scores = attended
        content, query = (
            self._rest(x, y, training) for x, y in zip(streams, attended, strict=True)
        )
        outputs = content, set_mask(query, getattr(attended[1], "_keras_mask", None))
        return outputs if scores is None else (outputs, scores)

    def compute_output_spec(self, *streams, **options):
        return self.attention.compute_output_spec(*streams, **options)
