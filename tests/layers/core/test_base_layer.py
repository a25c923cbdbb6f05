"""Configs of layers, made from the arguments of their constructors."""

import inspect
import json

import keras
import pytest

from tfnlp import layers
from tfnlp.layers.core.base_layer import BaseLayer


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


class ScaledFirst(layers.FeedForward):
    """Child whose argument has a default, and its parent's after it has none."""

    def __init__(self, scale=1.0, *args, **kwargs):
        super().__init__(*args, **kwargs)


def test_a_signature_has_the_arguments_that_go_to_the_parents():
    public = [getattr(layers, name) for name in layers.__all__]
    of_ours = [x for x in public if isinstance(x, type) and issubclass(x, BaseLayer)]
    assert len(of_ours) > 30
    for cls in [*of_ours, Scaled, ScaledFirst]:
        parameters = inspect.signature(cls).parameters
        assert {"name", "dtype", "trainable", *cls.OPTIONS} <= {*parameters}, cls
        assert not any(x.kind in (x.VAR_POSITIONAL, x.VAR_KEYWORD) for x in parameters.values())
    signature = inspect.signature(layers.EncoderBlock)
    assert [*signature.parameters][:3] == ["num_heads", "intermediate_dim", "activation"]
    signature.bind(2, 64, attention_dropout=0.1, kernel_initializer="zeros")
    assert next(iter(inspect.signature(ScaledFirst).parameters)) == "scale"
    # That of an instance, by which `tf.function` binds, is of its call.
    assert "dtype" not in inspect.signature(layers.FeedForward(8)).parameters


@pytest.mark.parametrize("cls", [Scaled, ScaledByRoot])
def test_the_config_has_the_arguments_of_a_child_and_nothing_else(cls):
    loaded = cls.from_config(cls(16, scale=4.0).get_config())
    assert (loaded.intermediate_dim, loaded.scale) == (16, 4.0)


def test_a_function_as_activation_is_loaded_again():
    layer = layers.SharedEncoder(2, 2, 16, activation=keras.activations.silu)
    config = keras.saving.serialize_keras_object(layer)
    loaded = keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))
    assert loaded.fields()["activation"] is keras.activations.silu
