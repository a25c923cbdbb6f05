"""Configs of layers, made from the arguments of their constructors."""

import inspect
import json
import typing

import keras
import numpy as np
import pytest
from keras import tree

from tfnlp import layers
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import weight_options


def test_fields_are_the_arguments_of_all_constructors_of_a_class():
    layer = layers.TwoStreamAttention(2, 4, clamp_length=3, use_segments=False)
    fields = layer.fields()
    assert (fields["num_heads"], fields["clamp_length"], fields["use_segments"]) == (2, 3, False)
    assert fields["kernel_initializer"] is layer.kernel_initializer
    assert not fields.keys() & {"self", "args", "kwargs", "name", "dtype", "quantized_parts"}


class Scaled(layers.FeedForward):
    """Child with an argument that it sets itself."""

    def __init__(self, *args, scale=1.0, **kwargs: object):
        super().__init__(*args, **kwargs)
        self.scale = scale


def test_a_signature_has_all_arguments_by_name():
    public = [getattr(layers, name) for name in layers.__all__]
    of_ours = [x for x in public if isinstance(x, type) and issubclass(x, BaseLayer)]
    assert len(of_ours) > 30
    for cls in of_ours:
        parameters = inspect.signature(cls).parameters
        assert {"name", "dtype", "trainable", *cls.OPTIONS} <= {*parameters}, cls
        *arguments, options = inspect.signature(cls.__init__).parameters.values()
        assert not any(x.kind is x.VAR_POSITIONAL for x in arguments)
        assert weight_options(typing.get_args(options.annotation)[0]) == cls.OPTIONS
    signature = inspect.signature(layers.EncoderBlock)
    assert [*signature.parameters][:3] == ["num_heads", "intermediate_dim", "activation"]
    signature.bind(2, 64, attention_dropout=0.1, kernel_initializer="zeros")
    # That of an instance, by which `tf.function` binds, is of its call.
    assert "dtype" not in inspect.signature(layers.FeedForward(8)).parameters


def test_the_config_has_the_arguments_of_a_child_and_nothing_else():
    loaded = Scaled.from_config(Scaled(16, scale=4.0).get_config())
    assert (loaded.intermediate_dim, loaded.scale) == (16, 4.0)
    assert layers.EncoderBlock.from_config({"num_heads": 2, "intermediate_dim": 8}).num_heads == 2


def test_a_function_as_activation_is_loaded_again():
    silu = keras.activations.silu
    fusion = layers.KnowledgeFusion(16, output_activation=silu)
    for layer in (layers.SharedEncoder(2, 2, 16, activation=silu), fusion):
        config = keras.saving.serialize_keras_object(layer)
        loaded = keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))
        assert list(loaded.fields().values()).count(silu) == 1


@pytest.mark.parametrize(
    "layer",
    [
        layers.RelativeBiases(2, 4, dtype="mixed_bfloat16"),
        layers.RelativePositionTable(3, dtype="mixed_bfloat16"),
    ],
)
def test_tables_are_of_the_compute_dtype(layer):
    assert all(x.dtype == "bfloat16" for x in tree.flatten(layer(np.ones((1, 2, 8)))))
