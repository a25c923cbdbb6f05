"""The vector of a text, from its states."""

import keras

from tfnlp.configs import Projection, VectorHead
from tfnlp.layers import SentencePooling
from tfnlp.models.text_model import TextModel, config_of, reads_choices
from tfnlp.utils.errors import InputError


def text_vector(head, states, padding_mask):
    """Return the vectors (B, D) float32 of states (B, L, D) by a `VectorHead`."""
    x = SentencePooling(head.pooling, name="sentence_pooling")(states, padding_mask)
    for i, projection in enumerate(head.projections):
        x = keras.layers.Dense(
            projection.units,
            activation=projection.activation,
            use_bias=projection.use_bias,
            dtype="float32",
            name=f"projection_{i}",
        )(x)
    return keras.layers.UnitNormalization(dtype="float32", name="unit")(x) if head.normalize else x


def with_vectors(model, head):
    """Return an embedder of a model's states, with the same weights.

    Args:
        model: from `build_model`, whose states are of one text.
        head: `VectorHead`.

    Raises:
        InputError: for a model of choices or of two streams.
    """
    config_of(model)
    if reads_choices(model) or model.head == "permutation_lm":
        raise InputError(
            f"pooling={','.join(head.pooling)} needs the states of one text, which the head "
            f"{model.head!r} has not; load the model without a head."
        )
    states, mask = model.output["sequence_output"], model.input["padding_mask"]
    outputs = {"embedding": text_vector(head, states, mask)} | model.output
    embedder = TextModel(model.input, outputs, name=model.name)
    embedder.text_config, embedder.head = model.text_config, "embedder"
    return embedder


def vector_head(model):
    """Return the `VectorHead` of an embedder, or a classifier of vectors; None of others."""
    names = [layer.name for layer in model.layers]
    if "sentence_pooling" not in names:
        return None
    return VectorHead(
        model.get_layer("sentence_pooling").modes,
        tuple(
            Projection(layer.units, keras.activations.serialize(layer.activation), layer.use_bias)
            for layer in projections(model)
        ),
        "unit" in names,
    )


def projections(model):
    """Return the dense layers on an embedder's vector, in order."""
    return [layer for layer in model.layers if layer.name.startswith("projection_")]
