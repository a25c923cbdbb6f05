"""GPT (Radford et al. 2018) and GPT-2 (Radford et al. 2019)."""

import math

from tfnlp.layers import FastTruncatedNormal, LayerNormalization
from tfnlp.models.shared_parts import (
    embed_tokens,
    encoder_blocks,
    run_blocks,
    text_embedding,
    visible_tokens,
)


def encode_gpt(config, inputs, options, **block_arguments):
    """Run a GPT; return as `run_blocks` does."""
    embed = text_embedding(
        config, num_segments=0, use_norm=False, dropout=config.embedding_dropout
    )
    return run_blocks(
        encoder_blocks(config, options, **block_arguments),
        embed_tokens(embed, inputs),
        options,
        attention_mask=visible_tokens(inputs),
        use_causal_mask=True,
    )


def encode_gpt2(config, inputs, options):
    """Run a GPT-2, which is pre-norm with a final norm; return as `encode_gpt` does."""
    # Radford et al. 2019, section 2.3: residual layers start scaled by 1 / sqrt(their number).
    scale = 1 / math.sqrt(2 * config.num_layers)
    scaled = FastTruncatedNormal(stddev=config.initializer_range * scale)
    blocks = {"norm_first": True, "output_initializer": scaled}
    states, further = encode_gpt(config, inputs, options, **blocks)
    norm = LayerNormalization(epsilon=config.layer_norm_epsilon, name="final_norm")
    states[-1] = norm(states[-1])
    return states, further
