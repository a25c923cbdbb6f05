"""ModernBERT (Warner et al. 2024): rotary positions, local and global attention, gates."""

import math

from tfnlp.layers import (
    FastTruncatedNormal,
    FeedForward,
    LayerNormalization,
    MultiHeadAttention,
    RotaryEmbedding,
)
from tfnlp.models.shared_parts import (
    encoder_blocks,
    run_blocks,
    text_embedding,
    visible_tokens,
    weight_initializer,
)


def encode_modernbert(config, inputs, options):
    """Run a ModernBERT, which is pre-norm with a final norm; return as `run_blocks` does.

    Rows of several documents need no positions: rotary ones count as distances alone.
    """
    norm = {"epsilon": config.layer_norm_epsilon, "center": config.biases}
    embed = text_embedding(
        config, max_length=None, center=config.biases, dropout=config.embedding_dropout
    )
    blocks = encoder_blocks(
        config,
        options,
        by_number=lambda number: _parts(config, options, number),
        norm=LayerNormalization(**norm),
        norm_first=True,
        dropout=config.attention_dropout,
        dropout_after=("attention",),
    )
    states, further = run_blocks(
        blocks, embed(inputs["token_ids"]), options, attention_mask=visible_tokens(inputs)
    )
    states[-1] = LayerNormalization(**norm, name="final_norm")(states[-1])
    return states, further


def _parts(config, options, number):
    """Return the parts of a block by its number: local or global, the first without a norm."""
    # As in `transformers`: what writes to the residual stream starts smaller.
    scale = 1 / math.sqrt(2 * config.num_layers)

    def initializers():
        scaled = FastTruncatedNormal(stddev=config.initializer_range * scale)
        return {"kernel_initializer": weight_initializer(config), "output_initializer": scaled}

    is_global = config.is_global(number)
    attention = MultiHeadAttention(
        config.num_heads,
        config.key_dim,
        dropout=config.attention_dropout,
        use_bias=config.biases,
        rotary=RotaryEmbedding(config.global_theta if is_global else config.local_theta),
        window=None if is_global else config.local_attention // 2,
        block_size=options.block_size,
        name="attention",
        **initializers(),
    )
    feed_forward = FeedForward(
        config.intermediate_dim,
        config.activation,
        dropout=config.dropout,
        gated=True,
        use_bias=config.biases,
        name="feed_forward",
        **initializers(),
    )
    normalized = ("attention", "feed_forward") if number else ("feed_forward",)
    return {"attention": attention, "feed_forward": feed_forward, "normalized": normalized}
