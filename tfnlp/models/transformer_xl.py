"""Transformer-XL (Dai et al. 2019): relative positions, memory, adaptive input and softmax."""

import keras
from keras import ops

from tfnlp.layers import AdaptiveEmbedding, RelativeAttention, RelativeBiases
from tfnlp.models.shared_parts import (
    after_memory,
    encoder_blocks,
    relative_arguments,
    run_blocks,
    updated_memory,
    weight_initializer,
)


def encode_transformer_xl(config, inputs, options):
    """Run a Transformer-XL; return as `run_blocks` does.

    With `memory` among the inputs, the third result is the new memory.
    """

    def attention():
        return RelativeAttention(**relative_arguments(config, options))

    embed = AdaptiveEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        cutoffs=config.cutoffs,
        embedding_dim=config.embedding_dim,
        div_value=config.div_value,
        dropout=config.dropout,
        embeddings_initializer=weight_initializer(config),
        kernel_initializer=weight_initializer(config),
        name="embeddings",
    )
    # Keras takes a layer in a model for one with as many outputs at every call: one call is all.
    x, _, _ = embed(inputs["token_ids"], return_tables=True)
    memory = inputs.get("memory")
    seen = after_memory(inputs["padding_mask"], memory, 1)[:, None, :]  # (B, 1, S)
    if config.same_length:
        window = _window_mask(inputs["token_ids"], memory, config.memory_length)
        seen = ops.logical_and(ops.cast(seen, "bool"), window)
    arguments = {}
    if config.share_biases:
        biases = RelativeBiases(
            config.num_heads,
            config.key_dim,
            bias_initializer=weight_initializer(config),
            name="biases",
        )
        arguments["content_bias"], arguments["position_bias"] = biases(x)
    states, further = run_blocks(
        encoder_blocks(config, options, attention, feed_forward_dropout=config.dropout),
        x,
        options,
        memory=memory,
        attention_mask=seen,
        use_causal_mask=True,
        attention_arguments=arguments,
    )
    new_memory = updated_memory(memory, states[:-1], config.memory_length)
    states[-1] = keras.layers.Dropout(config.dropout, name="dropout")(states[-1])
    return states, further, new_memory


def _window_mask(token_ids, memory, window):
    """Return a (B, T, S) boolean mask: true if a key is less than `window` before the query."""
    ones = ops.ones_like(token_ids)
    keys = ops.cumsum(after_memory(ones, memory, 1), axis=1)  # (B, S): 1, 2, ...
    # The queries are the last of the keys.
    queries = ops.cumsum(ones, axis=1) - ops.sum(ones, axis=1, keepdims=True) + keys[:, -1:]
    return queries[:, :, None] - keys[:, None, :] < window
