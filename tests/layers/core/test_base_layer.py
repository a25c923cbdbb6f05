"""Configs of layers, made from the arguments of their constructors."""

import json

import keras
import pytest

from tfnlp import layers


def test_fields_are_the_arguments_of_all_constructors_of_a_class():
    layer = layers.TwoStreamAttention(2, 4, clamp_length=3, use_segments=False)
    fields = layer.fields()
    assert (fields["num_heads"], fields["clamp_length"], fields["use_segments"]) == (2, 3, False)
    assert fields["kernel_initializer"] is layer.kernel_initializer
    assert not fields.keys() & {"self", "args", "kwargs", "name", "dtype", "quantized_parts"}


class Scaled(layers.FeedForward):
    """Child with an argument that it sets itself."""

    def __init__(self, *args, scale=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.scale = scale


class ScaledByRoot(layers.FeedForward):
    """Child that keeps its argument after it has computed with it."""

    def __init__(self, intermediate_dim, scale=1.0, **options):
        root = scale**0.5
        super().__init__(intermediate_dim, **options)
        self.keep(locals())
        self.root = root


@pytest.mark.parametrize("cls", [Scaled, ScaledByRoot])
def test_the_config_has_the_arguments_of_a_child_and_nothing_else(cls):
    loaded = cls.from_config(cls(16, scale=4.0).get_config())
    assert (loaded.intermediate_dim, loaded.scale) == (16, 4.0)


def test_a_function_as_activation_is_loaded_again():
    layer = layers.SharedEncoder(2, 2, 16, activation=keras.activations.silu)
    config = keras.saving.serialize_keras_object(layer)
    loaded = keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))
    assert loaded.fields()["activation"] is keras.activations.silu
