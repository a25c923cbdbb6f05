"""ALBERT (Lan et al. 2020): factorized embeddings, blocks that share their weights."""

from tfnlp.layers import SharedEncoder
from tfnlp.models.shared_parts import (
    embed_tokens,
    text_embedding,
    visible_tokens,
    weight_initializer,
)


def encode_albert(config, inputs, options):
    """Run an ALBERT encoder; return as `run_blocks` does."""
    embed = text_embedding(config, embedding_dim=config.embedding_dim)
    encoder = SharedEncoder(
        config.num_layers,
        config.num_heads,
        config.intermediate_dim,
        num_groups=config.num_groups,
        activation=config.activation,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        kernel_initializer=weight_initializer(config),
        dropout_after=config.dropout_after,
        block_size=options.block_size,
        key_dim=config.head_dim,
        name="encoder",
    )
    _, states, *further = encoder(
        embed_tokens(embed, inputs, segment_ids=inputs["segment_ids"]),
        attention_mask=visible_tokens(inputs),
        return_hidden_states=True,
        **options.block_arguments,
    )
    return states, dict(zip(options.block_outputs, further, strict=True))
