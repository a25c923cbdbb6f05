"""ALBERT (Lan et al. 2020): factorized embeddings, blocks that share their weights."""

from tfnlp.layers import SharedEncoder
from tfnlp.models.shared_parts import block_sizes, embed_tokens, text_embedding, visible_tokens


def encode_albert(config, inputs, options):
    """Run an ALBERT encoder; return as `run_blocks` does."""
    embed = text_embedding(config, embedding_dim=config.embedding_dim)
    encoder = SharedEncoder(
        config.num_layers,
        config.num_heads,
        config.intermediate_dim,
        num_groups=config.num_groups,
        dropout_after=config.dropout_after,
        name="encoder",
        **block_sizes(config, options),
    )
    _, states, *further = encoder(
        embed_tokens(embed, inputs, segment_ids=inputs["segment_ids"]),
        attention_mask=visible_tokens(inputs),
        return_hidden_states=True,
        **options.block_arguments,
    )
    return states, dict(zip(options.block_outputs, further, strict=True))
