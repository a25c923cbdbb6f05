"""Builders of the parts that model families share, from a config."""

import dataclasses

import keras
from keras import ops

from tfnlp.configs import VectorHead
from tfnlp.functional.masks import document_numbers, segment_mask
from tfnlp.layers import EncoderBlock, FastTruncatedNormal, TextEmbedding, update_memory


@dataclasses.dataclass(frozen=True)
class BuildOptions:
    """Options of `build_model` beside the config and the head."""

    hidden_states: bool = False
    attention_scores: bool = False
    attention_projections: bool = False
    block_size: int | None = None
    vectors: VectorHead | None = None

    @property
    def block_outputs(self):
        """Names of the model outputs that each block returns beside its states."""
        projections = ("queries", "keys", "values") * self.attention_projections
        return ("attention_scores",) * self.attention_scores + projections

    @property
    def block_arguments(self):
        """Call arguments that make a block return its `block_outputs`."""
        scores = {"return_attention_scores": self.attention_scores}
        return scores | ({"return_projections": True} if self.attention_projections else {})


def weight_initializer(config):
    """Return a new initializer for fresh weights, by the config's `initializer_range`."""
    if config.initializer_range is None:
        return keras.initializers.GlorotUniform()
    return FastTruncatedNormal(stddev=config.initializer_range)


def head_initializer(config):
    """Return a new initializer for a head: a normal distribution, not truncated.

    So `transformers` has it; a head that starts an eighth smaller is learned visibly later.
    """
    return keras.initializers.RandomNormal(stddev=config.initializer_range)


def text_embedding(config, shared=None, layer=TextEmbedding, **kwargs):
    """Build a `TextEmbedding` of the config's sizes; `kwargs` are specific to the family.

    With `shared`, another embedding, it shares that one's tables in the way of its class `layer`.
    """
    arguments = {
        "max_length": config.max_length,
        "num_segments": config.num_segments,
        "dropout": config.dropout,
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "embeddings_initializer": weight_initializer(config),
    }
    embedding = layer(
        config.vocabulary_size, config.hidden_dim, name="embeddings", **arguments | kwargs
    )
    if shared is not None:
        embedding.share(shared)
    return embedding


def token_embedding(config, name="embeddings", vocabulary_size=None, **kwargs):
    """Build a `TextEmbedding` of tokens alone, without a norm."""
    if "embeddings_initializer" not in kwargs:
        kwargs["embeddings_initializer"] = weight_initializer(config)
    size = vocabulary_size or config.vocabulary_size
    return TextEmbedding(
        size, config.hidden_dim, num_segments=0, use_norm=False, name=name, **kwargs
    )


def embed_tokens(embedding, inputs, **arguments):
    """Return a `TextEmbedding` of a model's inputs, with their `positions` if there are any."""
    if "positions" in inputs:
        arguments["positions"] = inputs["positions"]
    return embedding(inputs["token_ids"], **arguments)


def visible_tokens(inputs, queries=None):
    """Return the attention mask of a model's inputs, (B, 1, L) or (B, T, L).

    All tokens may see the real ones; with `positions`, those of their own document alone.

    Args:
        inputs: `padding_mask` (B, L), and `positions` (B, L) where a row holds several documents.
        queries: (B, T), the places of the tokens that attend; all tokens if None.
    """
    real = inputs["padding_mask"][:, None, :]
    if "positions" not in inputs:
        return real
    documents = keys = document_numbers(inputs["positions"])
    if queries is not None:
        documents = ops.take_along_axis(keys, queries, axis=1)
    return ops.logical_and(ops.cast(real, "bool"), segment_mask(documents, keys))


def block_sizes(config, options):
    """Return the constructor arguments that every kind of block takes from a config."""
    return {
        "activation": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "layer_norm_epsilon": config.layer_norm_epsilon,
        "kernel_initializer": weight_initializer(config),
        "block_size": options.block_size,
        "key_dim": config.head_dim,
    }


def encoder_blocks(
    config, options, attention=None, block=EncoderBlock, by_number=lambda number: {}, **kwargs
):
    """Build the config's blocks.

    Args:
        config, options: of the model.
        attention: a function that builds the attention of each block; BERT's if None.
        block: the class of the blocks.
        by_number: a function from the number of a block to arguments that differ by block.
        kwargs: arguments of all blocks.
    """
    kwargs = {"dropout_after": config.dropout_after} | kwargs
    return [
        block(
            config.num_heads,
            config.intermediate_dim,
            name=f"encoder_{i}",
            **block_sizes(config, options)
            | kwargs
            | {"attention": attention and attention()}
            | by_number(i),
        )
        for i in range(config.num_layers)
    ]


def run_blocks(blocks, x, options, memory=None, attention_arguments=None, **arguments):
    """Run x (B, L, D) through blocks, all called with the same arguments.

    Args:
        blocks: `EncoderBlock`s.
        x: (B, L, D).
        options: a `BuildOptions`.
        memory: (B, blocks, M, D), each block's states of earlier segments.
        attention_arguments, arguments: as an `EncoderBlock` takes them.

    Returns:
        The input and every block's output, a list of (B, L, D), and a dict of the requested
        outputs: `attention_scores`, a list of (B, N, L, M + L); `queries`, a list of (B, N, L,
        H), `keys` and `values`, lists of (B, N, M + L, H).
    """
    states, further = [x], {name: [] for name in options.block_outputs}
    for i, block in enumerate(blocks):
        block_memory = {} if memory is None else {"memory": memory[:, i]}
        x = block(
            x,
            attention_arguments=(attention_arguments or {}) | block_memory or None,
            **options.block_arguments,
            **arguments,
        )
        if further:
            x, *tensors = x
            for name, tensor in zip(further, tensors, strict=True):
                further[name].append(tensor)
        states.append(x)
    return states, further


def attention_arguments(config, options, **arguments):
    """Return the constructor arguments of an attention with relative positions."""
    return {
        "num_heads": config.num_heads,
        "key_dim": config.key_dim,
        "dropout": config.attention_dropout,
        "position_dropout": config.dropout,
        "block_size": options.block_size,
        "kernel_initializer": weight_initializer(config),
        "name": "attention",
    } | arguments


def relative_arguments(config, options):
    """Return the constructor arguments of Transformer-XL's and XLNet's attention."""
    arguments = attention_arguments(config, options, clamp_length=config.clamp_length)
    return arguments | {"bias_initializer": weight_initializer(config)}


def after_memory(values, memory, fill):
    """Prepend one `fill` to `values` (B, L) for each position of a memory (B, blocks, M, D).

    Returns:
        (B, M + L); `values` if the memory is None.
    """
    if memory is None:
        return values
    first = ops.full_like(memory[:, 0, :, 0], fill, dtype=values.dtype)
    return ops.concatenate([first, values], axis=1)


def updated_memory(memory, states, memory_length, reuse_length=None):
    """Return all blocks' memory after a segment, (B, blocks, <= memory_length, D) float32.

    Args:
        memory: before it, (B, blocks, M, D); None where the model keeps none.
        states: the inputs of the blocks, a list of (B, L, D).
        memory_length, reuse_length: as `tfnlp.layers.update_memory` takes them.

    Returns:
        The new memory; None where there was none.
    """
    if memory is None:
        return None
    states = [ops.cast(x, "float32") for x in states]
    arguments = (memory_length, reuse_length)
    return ops.stack(
        [update_memory(memory[:, i], x, *arguments) for i, x in enumerate(states)], axis=1
    )
