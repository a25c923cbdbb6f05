"""Layers that round as 8-bit integers do, and the .tflite of integers that they become."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from keras import ops

from distill.export.conversion import to_tflite
from tfnlp.layers import (
    DisentangledAttention,
    EncoderBlock,
    FeedForward,
    MultiHeadAttention,
    QuadraticPositionAttention,
    RelativeAttention,
    ScoreAttention,
    TwoStreamAttention,
    fake_quantize,
    get_ranges,
    set_ranges,
)
from tfnlp.layers.core.dense import Dense
from tfnlp.quantization.fake_quantization import FakeQuantizer, converting, in_float, observing
from tfnlp.quantization.rounded_products import integer_product, round_weights

LENGTH, WIDTH = 12, 32
SIZES = {"num_heads": 2, "key_dim": 16}
# How each layer is made, and called on states (B, L, D).
LAYERS = {
    "multi_head": (MultiHeadAttention, SIZES),
    "relative": (RelativeAttention, SIZES),
    "two_stream": (TwoStreamAttention, SIZES),
    "disentangled_v1": (
        DisentangledAttention,
        SIZES | {"max_distance": 8, "joint_projection": True},
    ),
    "disentangled_v2": (DisentangledAttention, SIZES | {"max_distance": 8, "share_att_key": True}),
    "quadratic_position": (
        QuadraticPositionAttention,
        {"num_heads": 2, "filters": WIDTH, "value_dim": 16},
    ),
    "score": (ScoreAttention, {}),
    "feed_forward": (FeedForward, {"intermediate_dim": 64}),
}


# Those whose products are all computed as a file does; others have further ones, by position.
EXACT = ("multi_head", "score", "feed_forward")


def output_of(name, layer, x):
    if name == "quadratic_position":
        return layer(ops.expand_dims(x, 1))[:, 0]
    return layer(x, x) if name == "score" else layer(x)


@pytest.fixture(scope="module")
def all_layers():
    """A model of all layers side by side, fake-quantised and calibrated; its inputs."""
    keras.utils.set_random_seed(0)
    x = keras.Input((LENGTH, WIDTH))
    layers = {name: make(**sizes, name=name) for name, (make, sizes) in LAYERS.items()}
    model = keras.Model(x, {name: output_of(name, layer, x) for name, layer in layers.items()})
    inputs = np.random.default_rng(0).normal(size=(8, LENGTH, WIDTH)).astype("float32")
    in_full = {name: y.numpy() for name, y in model(inputs).items()}
    fake_quantize(model)
    with observing(model):
        model(inputs)
    return model, inputs, in_full


def test_every_attention_rounds_and_stays_close(all_layers):
    model, inputs, in_full = all_layers
    rounded = model(inputs)
    with in_float(model):
        again = model(inputs)
    for name, expected in in_full.items():
        np.testing.assert_allclose(again[name], expected, atol=2e-6)
        error = np.sqrt(np.mean((rounded[name] - expected) ** 2)) / expected.std()
        assert 1e-3 < error < 0.03, name
    # Outputs of products have 256 values.
    low, high = get_ranges(model)["multi_head/output/outputs"]
    values = np.unique(rounded["multi_head"]) / ((high - low) / 255)
    assert 50 < len(np.unique(np.round(values - values[0]))) <= 256
    np.testing.assert_allclose(values - values[0], np.round(values - values[0]), atol=1e-3)


def test_scores_by_a_sum_round_no_product_of_query_and_key(all_layers):
    x = keras.Input((LENGTH, WIDTH))
    additive = keras.Model(x, ScoreAttention("concat", name="score")(x, x))
    fake_quantize(additive)
    with observing(additive):
        additive(all_layers[1])
    by_product, by_sum = (
        {name for name in get_ranges(model) if name.count("/") == 1 and name.startswith("score/")}
        for model in (all_layers[0], additive)
    )
    assert by_sum == {"score/value", "score/context"}
    assert by_product == by_sum | {"score/query", "score/key", "score/scores"}


def test_a_keras_file_keeps_which_parts_round(tmp_path):
    x = keras.Input((LENGTH, WIDTH))
    model = keras.Model(x, EncoderBlock(2, 64, name="block")(x))
    fake_quantize(model.get_layer("block").attention)
    inputs = np.random.default_rng(0).normal(size=(2, LENGTH, WIDTH)).astype("float32")
    with observing(model):
        model(inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert get_ranges(loaded) == get_ranges(model)
    assert len(get_ranges(loaded)) == 10  # of four projections, the query and the scores
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
    assert not loaded.get_layer("block").feed_forward.is_fake_quantized


def test_what_keras_compiled_before_is_not_used_after():
    x = np.random.default_rng(0).normal(size=(2, LENGTH, WIDTH)).astype("float32")
    inner = keras.Sequential([keras.Input((LENGTH, WIDTH)), FeedForward(64)])
    model = keras.Sequential([keras.Input((LENGTH, WIDTH)), inner])

    def check_predicts(expected, *models):
        for one in models:
            error = np.abs(one.predict(x, verbose=0) - expected).max()
            assert error < 1e-5 * np.std(expected)

    in_full = model.predict(x, verbose=0)
    inner.predict(x, verbose=0)
    fake_quantize(model)
    with observing(model):
        check_predicts(model(x), model)
    rounded = np.array(model(x))
    assert np.abs(rounded - in_full).max() > 1e-3 * in_full.std()
    check_predicts(rounded, model, inner)
    compiled = model.predict_function
    with in_float(model):
        check_predicts(in_full, model)
    assert model.predict_function is compiled
    check_predicts(rounded, model)


def test_every_attention_becomes_integers_that_say_the_same(all_layers):
    """All products in the file take integers, and their results are those of Keras to two steps.

    Those of `EXACT` are the same, but for what float32 rounds otherwise.
    """
    model, inputs, _ = all_layers
    names = sorted(LAYERS)  # those of outputs are not in the file

    def run(x):
        outputs = model(x, training=False)
        return {name: outputs[name] for name in names}

    specs = [tf.TensorSpec((1, LENGTH, WIDTH), "float32", name="x")]
    with converting(model):
        content = to_tflite(model, {"serving_default": (run, specs)}, "int8")
    tree = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    operators = {v: k for k, v in vars(schema.BuiltinOperator).items()}
    graph, products = tree.subgraphs[0], []
    for operator in graph.operators:
        code = tree.operatorCodes[operator.opcodeIndex]
        name = operators[max(code.builtinCode, code.deprecatedBuiltinCode)]
        if name in ("FULLY_CONNECTED", "BATCH_MATMUL"):
            products.append([graph.tensors[i].type for i in operator.inputs[:2]])
    integers = [types for types in products if types == [schema.TensorType.INT8] * 2]
    assert len(integers) > 30
    assert len(products) - len(integers) <= 1  # that of XLNet's two segment vectors
    converted = Interpreter(model_content=content).get_signature_runner()
    ranges, steps = get_ranges(model), {}
    for name in LAYERS:
        last = f"{name}/context" if name == "score" else f"{name}/output/outputs"
        low, high = ranges[last]
        steps[name] = (high - low) / 255
    for row in inputs[:3]:
        outputs = converted(x=row[None])
        for name, expected in model(row[None]).items():
            error = np.abs(outputs[name] - expected) / steps[name]
            assert error.max() <= 2.01, name
            if name in EXACT:
                assert np.mean(error > 0.5) < 0.002, name


def test_products_are_rounded_as_litert_rounds_them():
    a = np.array([[-7], [-6], [-5], [-2], [-1], [1], [2], [5], [6], [7]], "float32")
    b = np.ones((1, 1), "float32")
    steps = (0.249, 1.0), 1.0

    def rounded(twice):
        return ops.convert_to_numpy(integer_product(0.249 * a, b, *steps, twice))[:, 0]

    # Rounded to quarters, the next power of 2, they are whole quarters; halves go away from 0.
    np.testing.assert_array_equal(
        np.floor(rounded(True) + 0.5), [-2, -2, -1, -1, 0, 0, 1, 1, 2, 2]
    )
    np.testing.assert_allclose(rounded(False), 0.249 * a[:, 0], rtol=1e-6)
    np.testing.assert_array_equal(np.round(rounded(False)), [-2, -1, -1, 0, 0, 0, 0, 1, 1, 2])


def test_gradients_pass_as_if_nothing_were_rounded(all_layers):
    model, inputs, _ = all_layers

    def gradients():
        x = tf.constant(inputs)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = sum(tf.reduce_sum(y**2) for y in model(x).values())
        of = [x, *(v.value for v in model.trainable_variables)]
        return [tf.convert_to_tensor(g).numpy() for g in tape.gradient(loss, of, None, "zero")]

    rounded = gradients()
    with in_float(model):
        expected = gradients()
    for a, b in zip(rounded, expected, strict=True):
        assert np.any(a != b) or not np.any(b)
    a, b = (np.concatenate([g.ravel() for g in found]) for found in (rounded, expected))
    assert np.linalg.norm(a - b) < 0.1 * np.linalg.norm(b)


def test_a_range_widens_at_once_and_narrows_slowly():
    quantizer = FakeQuantizer(momentum=0.9)
    quantizer.build(None)

    def bounds():
        return pytest.approx([float(quantizer.low), float(quantizer.high)])

    quantizer(np.array([1.0, 4.0]), training=True)
    assert bounds() == [0, 4]  # with zero in it
    quantizer(np.array([-2.0, 2.0]), training=True)
    assert bounds() == [-2, 0.9 * 4 + 0.1 * 2]
    found = quantizer(np.array([-5.0, 5.0, 0.0]))  # at inference it stays
    assert bounds() == [-2, 3.8]
    np.testing.assert_allclose(found, [-2, 3.8, 0], atol=5.8 / 255)
    assert np.abs(quantizer(np.array([0.5])) - 0.5).max() > 1e-6


def test_weights_are_rounded_by_channel():
    kernel = np.array([[127.0, 0.3], [1.4, -1.27], [-63.5, 0.006]], "float32")
    expected = [[127.0, 0.3], [1.0, -1.27], [-64.0, 0.01]]
    np.testing.assert_allclose(round_weights(kernel, 0), expected, rtol=1e-5)


def test_weights_are_rounded_before_they_are_cast():
    layer = Dense(8, use_bias=False, dtype="mixed_bfloat16")
    layer.build((None, 16))
    kernel = np.random.default_rng(0).normal(size=(16, 8)).astype("float32")
    layer.kernel.assign(kernel)
    fake_quantize(layer)
    layer.fake_quantizers["inputs"].limits = (-128.0, 127.0)  # which leave 0 and 1 as they are
    layer.fake_quantizers["outputs"].observes = True
    found = layer(np.eye(16, dtype="float32"))
    expected = ops.cast(round_weights(kernel, 0), "bfloat16")
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(ops.cast(found, "float32"), ops.cast(expected, "float32"))


def test_ranges_go_from_one_model_to_another():
    first, second = (MultiHeadAttention(2, 4, name="a") for _ in range(2))
    other = FeedForward(8, name="a")
    x = np.random.default_rng(0).normal(size=(1, 5, 8)).astype("float32")
    for layer in (first, second, other):
        layer(x)
    assert get_ranges(first) == {}
    fake_quantize(first)
    first(x, training=True)
    second.set_weights([w for w in first.get_weights() if w.ndim])
    set_ranges(second, get_ranges(first))
    np.testing.assert_array_equal(second(x), first(x))
    assert get_ranges(second) == get_ranges(first)
    with pytest.raises(ValueError, match=r"not this model's: a/.* is in one of them alone"):
        set_ranges(other, get_ranges(first))


def test_attention_by_blocks_is_refused():
    layer = MultiHeadAttention(2, 4, block_size=2, name="a")
    layer.build((None, None, 8))
    with pytest.raises(ValueError, match="a has block_size=2 and never holds the scores"):
        fake_quantize(layer)
    assert not layer.is_fake_quantized
