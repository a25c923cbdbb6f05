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


@pytest.mark.parametrize(
    "make",
    [
        lambda **kw: layers.FeedForward(16, **kw),
        lambda **kw: layers.ConvolutionBlock(3, **kw),
        lambda **kw: layers.EncoderBlock(2, 16, **kw),
        lambda **kw: layers.SharedEncoder(2, 2, 16, **kw),
        lambda **kw: layers.QuadraticPositionAttention(2, 5, **kw),
    ],
)
def test_a_function_as_activation_is_loaded_again(make):
    config = keras.saving.serialize_keras_object(make(activation=keras.activations.silu))
    loaded = keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))
    assert loaded.fields()["activation"] is keras.activations.silu
