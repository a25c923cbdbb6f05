"""XLNet (Yang et al. 2019): relative positions and segments, two streams in pretraining."""

import keras
from keras import ops

from tfnlp.layers import (
    EncoderBlock,
    TwoStreamAttention,
    TwoStreamBlock,
    TwoStreamEmbedding,
    permutation_masks,
    segment_mask,
)
from tfnlp.models.shared_parts import (
    after_memory,
    encoder_blocks,
    relative_arguments,
    run_blocks,
    updated_memory,
    weight_initializer,
)


def encode_xlnet(config, inputs, options):
    """Run an XLNet; return as `run_blocks` does.

    With `permutation_order` and `target_mapping` among the inputs both streams run, and the
    result is the query stream's. The third result is the new memory, None without `memory`.
    """

    def attention():
        return TwoStreamAttention(**relative_arguments(config, options))

    embed = TwoStreamEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        dropout=config.dropout,
        embeddings_initializer=weight_initializer(config),
        name="embeddings",
    )
    pretrains = "target_mapping" in inputs
    blocks = encoder_blocks(
        config,
        options,
        attention,
        TwoStreamBlock if pretrains else EncoderBlock,
        feed_forward_dropout=config.dropout,
    )
    memory = inputs.get("memory")
    mask = after_memory(inputs["padding_mask"], memory, 1)[:, None, :]  # (B, 1, S)
    segments = inputs["segment_ids"]
    # A memory counts as the first segment, and comes before all positions of any order.
    arguments = {"segment_mask": segment_mask(segments, after_memory(segments, memory, 0))}
    if pretrains:
        streams = embed(inputs["token_ids"], inputs["target_mapping"])
        order = inputs["permutation_order"]
        masks = permutation_masks(order, after_memory(order, memory, -1))
        masks = [ops.logical_and(m, ops.cast(mask, "bool")) for m in masks]
        arguments["target_mapping"] = inputs["target_mapping"]
        states, further, contents = _run_streams(
            blocks, streams, options, masks, memory=memory, arguments=arguments
        )
    else:
        x = embed(inputs["token_ids"])
        states, further = run_blocks(
            blocks, x, options, memory, attention_mask=mask, attention_arguments=arguments
        )
        contents = states[:-1]
    new_memory = updated_memory(memory, contents, config.memory_length, config.reuse_length)
    states[-1] = keras.layers.Dropout(config.dropout, name="dropout")(states[-1])
    return states, further, new_memory


def _run_streams(blocks, streams, options, masks, memory, arguments):
    """Run both streams through the blocks.

    Returns:
        The query stream's states and scores, and the content stream's inputs of each block.
    """
    content, query = streams
    states, scores, contents = [query], [], []
    for i, block in enumerate(blocks):
        contents.append(content)
        streams = block(
            content,
            query,
            memory=None if memory is None else memory[:, i],
            attention_mask=masks[0],
            query_attention_mask=masks[1],
            return_attention_scores=options.attention_scores,
            **arguments,
        )
        if options.attention_scores:
            streams, (_, query_scores) = streams
            scores.append(query_scores)
        content, query = streams
        states.append(query)
    return states, {"attention_scores": scores} if scores else {}, contents
