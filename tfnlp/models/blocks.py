"""The parts that families are put together from, made from a config."""

from tfnlp.layers import EncoderBlock, TextEmbedding


def text_embedding(config, dtype, **kwargs):
    """A `TextEmbedding` of the config's sizes; further arguments are the family's own."""
    arguments = {
        "max_length": config.max_length,
        "num_segments": config.num_segments,
        "dropout": config.dropout,
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "embeddings_initializer": config.initializer,
    }
    return TextEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        dtype=dtype,
        name="embeddings",
        **arguments | kwargs,
    )


def encoder_blocks(config, dtype, attention=None, **kwargs):
    """The config's `EncoderBlock`s; `attention(name)` makes the attention of each where given."""
    return [
        EncoderBlock(
            config.num_heads,
            config.intermediate_dim,
            activation=config.activation,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            kernel_initializer=config.initializer,
            attention=attention and attention(),
            dtype=dtype,
            name=f"encoder_{i}",
            **kwargs,
        )
        for i in range(config.num_layers)
    ]


def encode_text(config, inputs, dtype, **embedding_arguments):
    """The states and scores of BERT and its kin: embeddings, then blocks that see all real tokens.

    Args:
        config: of the family.
        inputs: `token_ids`, `segment_ids` and `padding_mask`, each (B, L).
        dtype: a Keras dtype policy.
        embedding_arguments: the family's own, of its `TextEmbedding`.

    Returns:
        As `run_blocks`.
    """
    x = text_embedding(config, dtype, **embedding_arguments)(
        inputs["token_ids"], inputs["segment_ids"]
    )
    attention_mask = inputs["padding_mask"][:, None, :]  # (B, 1, L)
    return run_blocks(encoder_blocks(config, dtype), x, attention_mask=attention_mask)


def run_blocks(blocks, x, **arguments):
    """Sends x (B, L, D) through blocks, all called with the same arguments.

    Returns:
        The input and every block's output, a list of (B, L, D), and every block's scores, a
        list of (B, N, L, L).
    """
    states, scores = [x], []
    for block in blocks:
        x, block_scores = block(x, return_attention_scores=True, **arguments)
        states.append(x)
        scores.append(block_scores)
    return states, scores
