"""The encoder-decoder transformer (Vaswani et al. 2017), and Marian's setting of it."""

import math

import keras
from keras import ops

from tfnlp.layers import (
    DecoderBlock,
    FastTruncatedNormal,
    LayerNormalization,
    OutputBias,
    SinusoidalPositionEncoding,
)
from tfnlp.models import heads
from tfnlp.models.shared_parts import block_sizes, encoder_blocks, run_blocks, token_embedding


def run_transformer(config, inputs, options, head):
    """Run a transformer encoder-decoder on sources and targets.

    Args:
        config: a `TransformerConfig`.
        inputs: `encoder_token_ids` and `encoder_padding_mask`, (B, S), and `decoder_token_ids`,
            (B, T).
        options: a `BuildOptions`.
        head: "sequence_to_sequence", or None for no logits.

    Returns:
        The outputs, a dict, as `build_model` describes them; and the states of the decoder and of
        the encoder, lists of (B, T, D) and (B, S, D).
    """
    embed = embed_source = _embedding(config, "embeddings", config.decoder.vocabulary_size)
    if not config.share_embeddings:
        embed_source = _embedding(config, "encoder_embeddings", config.vocabulary_size)
    place = SinusoidalPositionEncoding(
        interleaved=False,
        scale=math.sqrt(config.hidden_dim) if config.scale_embeddings else 1.0,
        max_length=config.max_length,
        name="positions",
    )
    drop = keras.layers.Dropout(config.dropout, name="embedding_dropout")
    source_mask = inputs["encoder_padding_mask"][:, None, :]  # (B, 1, S)
    block_arguments = {
        "norm_first": config.norm_first,
        "feed_forward_dropout": config.activation_dropout,
    }
    source_states, source_further = run_blocks(
        encoder_blocks(config, options, **block_arguments),
        drop(place(embed_source(inputs["encoder_token_ids"]))),
        options,
        attention_mask=source_mask,
    )
    _norm_last(config, source_states, "encoder_norm")
    states, further = _run_decoder(
        decoder_blocks(config, options, **block_arguments),
        drop(place(embed(inputs["decoder_token_ids"]))),
        source_states[-1],
        source_mask,
        options,
    )
    _norm_last(config, states, "decoder_norm")
    outputs = {"sequence_output": states[-1], "encoder_output": source_states[-1]}
    if head is not None:
        outputs = {"logits": _logits(config, embed, states[-1])} | outputs
    outputs |= further | {f"encoder_{name}": tensors for name, tensors in source_further.items()}
    return outputs, states, source_states


def decoder_blocks(config, options, **kwargs):
    """Build the decoder blocks of a config."""
    sizes = config.decoder
    return [
        DecoderBlock(
            sizes.num_heads,
            sizes.intermediate_dim,
            name=f"decoder_{i}",
            **block_sizes(config, options) | kwargs,
        )
        for i in range(sizes.num_layers)
    ]


def _run_decoder(blocks, x, source, source_mask, options):
    """Run the decoder as `run_blocks` does; names of cross-attention outputs begin "cross_"."""
    names = ["attention_scores", "cross_attention_scores"] * options.attention_scores
    if options.attention_projections:
        tensors = ("queries", "keys", "values")
        names += [f"{prefix}{name}" for prefix in ("", "cross_") for name in tensors]
    states, further = [x], {name: [] for name in names}
    for block in blocks:
        x = block(x, source, encoder_mask=source_mask, **options.block_arguments)
        if further:
            x, *tensors = x
            for name, tensor in zip(further, tensors, strict=True):
                further[name].append(tensor)
        states.append(x)
    return states, further


def _table_initializer(config):
    """Return a new initializer for fresh tables, tied or not."""
    return FastTruncatedNormal(stddev=config.initializer_range or config.hidden_dim**-0.5)


def _embedding(config, name, vocabulary_size):
    return token_embedding(
        config, name, vocabulary_size, embeddings_initializer=_table_initializer(config)
    )


def _norm_last(config, states, name):
    """Normalise the last of pre-norm blocks' states, in place."""
    if config.norm_first:
        norm = LayerNormalization(epsilon=config.layer_norm_epsilon, name=name)
        states[-1] = norm(states[-1])


def _logits(config, embeddings, x):
    """Compute the logits of the next token, (B, T, V) float32."""
    initializer = _table_initializer(config)
    logits = heads.lm(config, embeddings, x, use_bias=False, initializer=initializer)
    if config.output_bias:
        logits = OutputBias(trainable=False, name="lm_bias")(logits)
    # The loss is exact under mixed precision, too.
    return logits if logits.dtype == "float32" else ops.cast(logits, "float32")
