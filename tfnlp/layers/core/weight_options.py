"""Options that the constructors of layers take by keyword, for Keras and for their weights."""

from typing import TypedDict


class LayerOptions(TypedDict, total=False):
    """Options of every layer, as `keras.layers.Layer` takes them."""

    name: str
    dtype: object
    trainable: bool
    autocast: bool
    activity_regularizer: object


class KernelPenalties(LayerOptions, total=False):
    """Options of kernels that the layer draws by another initializer."""

    kernel_regularizer: object
    kernel_constraint: object


class KernelOptions(KernelPenalties, total=False):
    """Options of kernels, as `keras.layers.Dense` takes them."""

    kernel_initializer: object


class BiasPenalties(LayerOptions, total=False):
    """Options of biases that the layer starts at numbers of its own."""

    bias_regularizer: object
    bias_constraint: object


class BiasOptions(BiasPenalties, total=False):
    """Options of biases, as `keras.layers.Dense` takes them."""

    bias_initializer: object


class EmbeddingsOptions(LayerOptions, total=False):
    """Options of tables, as `keras.layers.Embedding` takes them."""

    embeddings_initializer: object
    embeddings_regularizer: object
    embeddings_constraint: object


class WeightOptions(KernelOptions, BiasOptions, total=False):
    """Options of kernels and biases."""


class AttentionOptions(WeightOptions, total=False):
    """Options of the weights of an attention."""

    output_initializer: object


def weight_options(options):
    """Return the names of those options of a `TypedDict` that are of weights."""
    kinds = ("_initializer", "_regularizer", "_constraint")
    names = (name for name in options.__annotations__ if name.endswith(kinds))
    return tuple(name for name in names if name not in LayerOptions.__annotations__)
