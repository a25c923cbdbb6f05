"""DeBERTa v1 (He et al. 2020), v2 and v3 (He et al. 2021): disentangled attention."""

from tfnlp.layers import (
    ConvolutionBlock,
    DisentangledAttention,
    GradientDisentangledEmbedding,
    LearnedPositionEncoding,
    RelativePositionTable,
)
from tfnlp.models.shared_parts import (
    attention_arguments,
    embed_tokens,
    encoder_blocks,
    run_blocks,
    text_embedding,
    visible_tokens,
    weight_initializer,
)


def encode_deberta(config, inputs, options, shared=None):
    """Run a DeBERTa v1, sharing the tables of the `TextEmbedding` `shared`, as `run_blocks`."""

    def attention():
        return _attention(config, options, joint_projection=True)

    x, arguments = _embed(config, inputs, shared)
    return run_blocks(encoder_blocks(config, options, attention), x, options, **arguments)


def encode_deberta_v2(config, inputs, options, shared=None):
    """Run a DeBERTa v2 or v3; arguments and result are those of `encode_deberta`."""
    buckets = {"num_buckets": config.num_buckets}

    def attention():
        return _attention(config, options, share_att_key=config.share_att_key, **buckets)

    table = buckets | {"normalize": config.normalize_positions}
    x, arguments = _embed(config, inputs, shared, **table)
    blocks = encoder_blocks(config, options, attention)
    states, further = run_blocks(blocks[:1], x, options, **arguments)
    if config.convolution_size:
        convolve = ConvolutionBlock(
            config.convolution_size,
            groups=config.convolution_groups,
            activation=config.convolution_activation,
            dropout=config.dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            kernel_initializer=weight_initializer(config),
            name="convolution",
        )
        states[1] = convolve(x, states[1], inputs["padding_mask"])
    later_states, later = run_blocks(blocks[1:], states[1], options, **arguments)
    return states + later_states[1:], {name: further[name] + later[name] for name in further}


def decode_masks(config, encoder, inputs, states, options):
    """Compute the states (B, L, D) that masked tokens are predicted from.

    He et al. 2020, section 3.2, as in its code release: the last block runs twice more over its
    input states. Its queries are first these states plus absolute positions, then its own output.

    Args:
        config: with `enhanced_mask_decoder`.
        encoder: the model from inputs to the last state.
        inputs: of the model.
        states: of the embeddings and every block.
        options: a `BuildOptions`.
    """
    arguments = {"attention_mask": visible_tokens(inputs)}
    if config.terms != ("c2c",):
        table = encoder.get_layer("relative_positions").output
        arguments["attention_arguments"] = {"position_table": table}
    positions = LearnedPositionEncoding(
        config.max_length,
        embeddings_initializer=weight_initializer(config),
        name="decoder_positions",
    )
    block = encoder.get_layer(f"encoder_{config.num_layers - 1}")
    x = positions(states[-2], positions=inputs.get("positions"))
    for _ in range(2):
        # As many outputs as at the first call, as Keras wants it.
        x = block(x, value=states[-2], **options.block_arguments, **arguments)
        x = x[0] if options.block_outputs else x
    return x


def _attention(config, options, **arguments):
    arguments |= {"terms": config.terms, "max_distance": config.max_distance}
    return DisentangledAttention(**attention_arguments(config, options, **arguments))


def _embed(config, inputs, shared, **table_arguments):
    """Return the embeddings, and the call arguments of all blocks."""
    arguments = {"max_length": config.max_length if config.absolute_positions else None}
    if shared is not None:
        arguments |= {"shared": shared, "layer": GradientDisentangledEmbedding}
    embed = text_embedding(config, **arguments)
    x = embed_tokens(embed, inputs, segment_ids=inputs["segment_ids"])
    arguments = {"attention_mask": visible_tokens(inputs)}
    if config.terms != ("c2c",):
        table = RelativePositionTable(
            config.max_distance,
            embeddings_initializer=weight_initializer(config),
            layer_norm_epsilon=config.layer_norm_epsilon,
            name="relative_positions",
            **table_arguments,
        )
        arguments["attention_arguments"] = {"position_table": table(x)}
    return x, arguments
