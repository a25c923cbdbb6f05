"""Saving, precision and TFLite of the layers whose inputs are not one sequence alone."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from distill.export.conversion import to_tflite
from tests.layers.witnesses import rand
from tfnlp import layers


def image_model(**options):
    inputs = keras.Input((None, None, 3))
    outputs = layers.QuadraticPositionAttention(4, 5, **options)(
        inputs, return_attention_scores=True
    )
    return keras.Model(inputs, outputs)


def embedding_model():
    inputs = keras.Input((None,), dtype="int32")
    layer = layers.FactorizedEmbedding(20, 4, 8, use_output_bias=True)
    x = layers.LearnedPositionEncoding(32)(layers.SinusoidalPositionEncoding()(layer(inputs)))
    return keras.Model(inputs, layer(layers.SharedEncoder(3, 2, 16)(x), reverse=True))


def streams_model():
    content, query = keras.Input((None, 8)), keras.Input((None, 8))
    mapping, memory = keras.Input((None, None)), keras.Input((None, 8))
    inputs = {"content": content, "query": query, "mapping": mapping, "memory": memory}
    outputs = layers.TwoStreamAttention(2, 4)(
        content, query, target_mapping=mapping, memory=memory
    )
    return keras.Model(inputs, list(outputs))


def relative_model():
    x, memory = keras.Input((None, 8)), keras.Input((None, 8))
    u, v = layers.RelativeBiases(2, 4)(x)
    y = layers.RelativeAttention(2, 4)(
        x, memory=memory, content_bias=u, position_bias=v, use_causal_mask=True
    )
    return keras.Model({"x": x, "memory": memory}, y)


def table_model():
    x = keras.Input((None, 8))
    table = layers.RelativePositionTable(5, normalize=True)(x)
    y = layers.DisentangledAttention(2, 4, max_distance=5)(x, position_table=table)
    return keras.Model(
        x, layers.DisentangledAttention(2, 4, max_distance=5)(y, position_table=table)
    )


def recurrent_model():
    query, value = keras.Input((None, 8)), keras.Input((None, 6))
    inputs = {"query": query, "value": value}
    return keras.Model(inputs, layers.ScoreAttention("concat", units=5)(query, value))


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
    "quadratic with values": (lambda: image_model(value_dim=2), [rand(1, 4, 6, 3)]),
    "embedding and shared encoder": (
        embedding_model,
        [np.array([[1, 5, 19]], "int32"), np.array([[7]], "int32")],
    ),
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
    "relative with memory": (
        relative_model,
        [
            {"x": rand(1, n, 8), "memory": rand(1, m, 8, seed=1)}
            for n, m in ((5, 3), (1, 2), (8, 1))
        ],
    ),
    "shared table": (table_model, [rand(1, 3, 8), rand(1, 12, 8), rand(1, 1, 8)]),
    "recurrent": (
        recurrent_model,
        [{"query": rand(1, n, 8), "value": rand(1, m, 6)} for n, m in ((2, 5), (1, 1), (4, 3))],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_saves_and_loads(name, tmp_path):
    make, inputs = CASES[name]
    model = make()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for x in inputs:
        for a, b in zip(tf.nest.flatten(model(x)), tf.nest.flatten(loaded(x)), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", CASES)
def test_converts_to_tflite_without_flex(name):
    make, cases = CASES[name]
    model = make()
    named = model.input if isinstance(model.input, dict) else {"x": model.input}
    specs = [tf.TensorSpec((1, *x.shape[1:]), x.dtype, name) for name, x in named.items()]

    def call(*tensors):
        x = dict(zip(named, tensors, strict=True))
        outputs = model(x if isinstance(model.input, dict) else x["x"], training=False)
        return {f"output_{i}": y for i, y in enumerate(tf.nest.flatten(outputs))}

    content = to_tflite(model, {"serving_default": (call, specs)}, "float32")
    run = Interpreter(model_content=content).get_signature_runner()
    for x in cases:
        outputs = run(**(x if isinstance(x, dict) else {"x": x}))
        expected = tf.nest.flatten(model(x))
        assert len(outputs) == len(expected)
        for i, y in enumerate(expected):
            np.testing.assert_allclose(outputs[f"output_{i}"], y, atol=1e-4)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_quadratic_in_mixed_precision(policy):
    image = rand(2, 5, 6, 3)
    exact = layers.QuadraticPositionAttention(4, 5)
    expected = exact(image)
    mixed = layers.QuadraticPositionAttention(4, 5, dtype=policy)
    mixed.build(image.shape)
    mixed.set_weights(exact.get_weights())
    mask = np.ones((2, 30, 30), bool)
    mask[1] = False
    tolerance = 0.005 if policy == "mixed_float16" else 0.04
    for found in (mixed(image), mixed(image, attention_mask=mask)):
        assert found.dtype == policy.removeprefix("mixed_")
        np.testing.assert_allclose(tf.cast(found, "float32")[0], expected[0], atol=tolerance)
    np.testing.assert_array_equal(found[1], np.zeros((5, 6, 5)))


def test_symbolic_shapes_of_streams_images_and_logits():
    content, query = streams_model().output
    assert content.shape == query.shape == (None, None, 8)
    output, scores = layers.QuadraticPositionAttention(4, 5)(
        keras.Input((6, 7, 3)), return_attention_scores=True
    )
    assert output.shape == (None, 6, 7, 5) and scores.shape == (None, 4, 42, 42)
    content, scores = layers.TwoStreamAttention(2, 4)(
        keras.Input((5, 8)), memory=keras.Input((3, 8)), return_attention_scores=True
    )
    assert scores.shape == (None, 2, 5, 8)
    _, scores = layers.RelativeAttention(2, 4)(
        keras.Input((5, 8)), memory=keras.Input((3, 8)), return_attention_scores=True
    )
    assert scores.shape == (None, 2, 5, 8)
    found = layers.RelativeAttention(2, 4)(
        rand(1, 5, 8), memory=rand(1, 3, 8), return_attention_scores=True
    )
    assert found[1].shape == (1, 2, 5, 8)
