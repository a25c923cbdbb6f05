"""Saving, loading and TFLite of layers in models, of attention alone and of several inputs."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from distill.export.conversion import to_tflite
from tests.layers.test_attention_layers import made
from tests.layers.witnesses import rand
from tfnlp import layers

# What no family that tests/distill converts has.
MORE = ("rotary and local", "four terms", "concat")
BLOCKWISE = ("relative", "two-stream", "DeBERTa v3")


def attention_model(name):
    options = {"block_size": 4} if name.endswith(" in blocks") else {}
    layer = made(name.removesuffix(" in blocks"), **options)
    inputs = keras.Input((None, 8))
    return keras.Model(inputs, layer(inputs))


def image_model():
    inputs = keras.Input((None, None, 3))
    layer = layers.QuadraticPositionAttention(4, 5, value_dim=2)
    return keras.Model(inputs, layer(inputs, return_attention_scores=True))


def streams_model():
    content, query = keras.Input((None, 8)), keras.Input((None, 8))
    mapping, memory = keras.Input((None, None)), keras.Input((None, 8))
    inputs = {"content": content, "query": query, "mapping": mapping, "memory": memory}
    outputs = layers.TwoStreamAttention(2, 4)(
        content, query, target_mapping=mapping, memory=memory
    )
    return keras.Model(inputs, list(outputs))


def knowledge_model():
    shapes = {"tokens": (None, 8), "entities": (None, 6), "entity_mask": (None,)}
    inputs = {name: keras.Input(shape, name=name) for name, shape in shapes.items()}
    block = layers.KnowledgeBlock(2, 12, num_entity_heads=3)
    x, entities = block(inputs["tokens"], inputs["entities"], entity_mask=inputs["entity_mask"])
    fuse = layers.KnowledgeFusion(12, "tanh", "relu")
    return keras.Model(inputs, list(fuse(x, entities, inputs["entity_mask"])))


def mentions(length, mask):
    states = {"tokens": rand(1, length, 8), "entities": rand(1, length, 6, seed=1)}
    return states | {"entity_mask": np.array([mask], "float32")}


CASES = {
    "knowledge": (
        knowledge_model,
        [mentions(3, [1, 0, 1]), mentions(1, [0]), mentions(5, [1, 1, 1, 1, 1])],
    ),
    "quadratic": (image_model, [rand(1, 4, 6, 3), rand(1, 7, 3, 3, seed=1)]),
    "two streams": (
        streams_model,
        [
            {
                "content": rand(1, length, 8),
                "query": rand(1, 2, 8, seed=1),
                "mapping": np.eye(2, length, dtype="float32")[None],
                "memory": rand(1, memory, 8, seed=2),
            }
            for length, memory in ((5, 3), (2, 1), (9, 4))
        ],
    ),
}
CASES |= {
    name: (functools.partial(attention_model, name), [rand(1, n, 8) for n in (1, 12, 70)])
    for name in (
        "rotary and local",
        "four terms",
        "concat",
        *(f"{name} in blocks" for name in BLOCKWISE),
    )
}


def converted(model, shapes):
    """What runs the model as TFLite builtins alone, on inputs by name."""
    specs = [tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in shapes.items()]

    def call(*tensors):
        x = dict(zip(shapes, tensors, strict=True))
        outputs = model(x if isinstance(model.input, dict) else x["x"], training=False)
        return {f"output_{i}": y for i, y in enumerate(tf.nest.flatten(outputs))}

    content = to_tflite(model, {"serving_default": (call, specs)}, "float32")
    return Interpreter(model_content=content).get_signature_runner()


@pytest.mark.parametrize("name", CASES)
def test_saves_loads_and_converts_to_tflite_without_flex(name, tmp_path):
    make, cases = CASES[name]
    model = make()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    named = model.input if isinstance(model.input, dict) else {"x": model.input}
    run = converted(model, {name: ((1, *x.shape[1:]), x.dtype) for name, x in named.items()})
    for x in cases:
        outputs = run(**(x if isinstance(x, dict) else {"x": x}))
        expected = tf.nest.flatten(model(x))
        assert len(outputs) == len(expected)
        for i, (y, again) in enumerate(zip(expected, tf.nest.flatten(loaded(x)), strict=True)):
            np.testing.assert_allclose(outputs[f"output_{i}"], y, atol=1e-4)
            np.testing.assert_array_equal(again, y)


def test_quadratic_in_mixed_precision():
    image = rand(2, 5, 6, 3)
    exact = layers.QuadraticPositionAttention(4, 5)
    expected = exact(image)
    mixed = layers.QuadraticPositionAttention(4, 5, dtype="mixed_float16")
    mixed.build(image.shape)
    mixed.set_weights(exact.get_weights())
    mask = np.ones((2, 30, 30), bool)
    mask[1] = False
    found = mixed(image, attention_mask=mask)
    assert found.dtype == "float16"
    np.testing.assert_allclose(tf.cast(found, "float32")[0], expected[0], atol=0.005)
    np.testing.assert_array_equal(found[1], np.zeros((5, 6, 5)))


def test_symbolic_shapes_of_scores_with_a_memory():
    for layer in (layers.TwoStreamAttention(2, 4), layers.RelativeAttention(2, 4)):
        for make in (keras.Input, lambda shape: rand(1, *shape)):
            x, memory = make((5, 8)), make((3, 8))
            _, scores = layer(x, memory=memory, return_attention_scores=True)
            assert scores.shape[1:] == (2, 5, 8)
