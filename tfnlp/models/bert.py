"""BERT (Devlin et al. 2019), and the families that differ from it in sizes and embeddings.

DistilBERT (Sanh et al. 2019), RoBERTa (Liu et al. 2019) and ELECTRA (Clark et al. 2020).
"""

from tfnlp.models.shared_parts import (
    embed_tokens,
    encoder_blocks,
    run_blocks,
    text_embedding,
    visible_tokens,
)


def encode_bert(config, inputs, options, **embedding_arguments):
    """Run a BERT or a DistilBERT: embeddings, then blocks that attend to all real tokens.

    Args:
        config: of the family.
        inputs: `token_ids`, `segment_ids` and `padding_mask`, each (B, L), and any `positions`.
        options: a `BuildOptions`.
        embedding_arguments: the family's own, of its `TextEmbedding`.

    Returns:
        As `run_blocks`.
    """
    embedding = text_embedding(config, **embedding_arguments)
    x = embed_tokens(embedding, inputs, segment_ids=inputs["segment_ids"])
    blocks = encoder_blocks(config, options)
    return run_blocks(blocks, x, options, attention_mask=visible_tokens(inputs))


def encode_roberta(config, inputs, options):
    """Run a RoBERTa encoder as `encode_bert` does; padding must be at the end."""
    return encode_bert(config, inputs, options, position_offset=config.pad_token_id + 1)


def encode_electra(config, inputs, options, shared=None):
    """Run an ELECTRA as `encode_bert` does, sharing the tables of `shared`, a `TextEmbedding`."""
    width = None if config.embedding_dim == config.hidden_dim else config.embedding_dim
    return encode_bert(config, inputs, options, embedding_dim=width, shared=shared)
