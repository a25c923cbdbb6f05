"""What every attention layer promises: masks, saving, shapes, precision, TFLite, errors."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from distill.export.conversion import to_tflite
from tests.distill.expected import tree_of
from tfnlp import layers

MAKERS = {
    "plain": lambda **kw: layers.MultiHeadAttention(2, 4, **kw),
    "relative": lambda **kw: layers.RelativeAttention(2, 4, clamp_length=6, **kw),
    "two-stream": lambda **kw: layers.TwoStreamAttention(2, 4, **kw),
    "disentangled": lambda **kw: layers.DisentangledAttention(2, 4, max_distance=5, **kw),
    "DeBERTa v1": lambda **kw: layers.DisentangledAttention(
        2, 4, max_distance=5, joint_projection=True, **kw
    ),
    "DeBERTa v3": lambda **kw: layers.DisentangledAttention(
        2, 4, max_distance=9, num_buckets=4, share_att_key=True, normalize_positions=True, **kw
    ),
    "four terms": lambda **kw: layers.DisentangledAttention(
        2, 4, terms=layers.ATTENTION_TERMS, max_distance=5, **kw
    ),
    "dot": lambda **kw: Recurrent("dot", **kw),
    "general": lambda **kw: Recurrent("general", **kw),
    "concat": lambda **kw: Recurrent("concat", units=6, **kw),
}
BLOCKWISE = ("plain", "relative", "two-stream", "disentangled", "DeBERTa v3", "four terms")


@keras.saving.register_keras_serializable("tests")
class Recurrent(layers.ScoreAttention):
    """`ScoreAttention` of a sequence to itself, to be tested as the others are."""

    def build(self, query_shape):
        super().build(query_shape, query_shape)

    def call(
        self,
        query,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        mask=None,
    ):
        return super().call(
            query,
            query,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            query_mask=mask,
            value_mask=mask,
        )

    def compute_output_spec(self, query, **kwargs):
        return super().compute_output_spec(query, query, **kwargs)


def made(name, **kwargs):
    layer = MAKERS[name](**kwargs)
    layer.build((None, None, 8))
    rng = np.random.default_rng(0)
    layer.set_weights([rng.normal(size=w.shape, scale=0.4) for w in layer.weights])
    return layer


def text(batch=2, length=6, seed=0):
    return np.random.default_rng(seed).normal(size=(batch, length, 8)).astype("float32")


@pytest.mark.parametrize("name", MAKERS)
def test_fully_masked_row_gives_zeros_and_finite_gradients(name):
    layer = made(name)
    if hasattr(layer, "output_dense") and layer.output_dense.bias is not None:
        layer.output_dense.bias.assign(np.zeros(8))
    x = tf.constant(text())
    mask = tf.constant([[True] * 6, [False] * 6])[:, None, :]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, attention_mask=mask)
        loss = tf.reduce_sum(y**2)
    variables = [x, *(v.value for v in layer.trainable_variables)]
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables) if g is not None]
    np.testing.assert_array_equal(y[1], np.zeros((6, 8)))
    assert np.abs(y[0]).max() > 1e-3
    assert all(np.isfinite(g).all() for g in gradients)
    np.testing.assert_array_equal(gradients[0][1], np.zeros((6, 8)))


@pytest.mark.parametrize("name", MAKERS)
def test_takes_keras_masks(name):
    layer = made(name)
    embedding = keras.layers.Embedding(10, 8, mask_zero=True)
    ids = np.array([[3, 4, 5, 0, 0]])
    found = layer(embedding(ids))[:, :3]
    np.testing.assert_allclose(found, layer(embedding(ids[:, :3])), atol=1e-5)
    mask = (ids != 0)[:, None, :]
    unmasked = embedding(ids).numpy()
    np.testing.assert_allclose(layer(unmasked, attention_mask=mask)[:, :3], found, atol=1e-5)


@pytest.mark.parametrize("name", MAKERS)
def test_two_and_three_axes_of_a_mask_agree(name):
    layer = made(name)
    mask = np.tri(6, dtype=bool)
    found = layer(text(), attention_mask=mask)
    expected = layer(text(), attention_mask=np.tile(mask, (2, 1, 1)).astype("int32"))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MAKERS)
def test_a_mask_with_an_axis_of_heads_is_for_each_or_for_all(name):
    layer = made(name)
    mask = np.random.default_rng(0).random((2, 6, 6)) < 0.6
    expected = layer(text(), attention_mask=mask)
    np.testing.assert_array_equal(layer(text(), attention_mask=mask[:, None]), expected)
    if hasattr(layer, "num_heads"):
        by_head = mask[:, None].repeat(2, 1)
        np.testing.assert_allclose(layer(text(), attention_mask=by_head), expected, atol=1e-6)
        by_head[:, 1] = True
        assert np.abs(layer(text(), attention_mask=by_head) - expected).max() > 1e-3


@pytest.mark.parametrize("name", MAKERS)
def test_saves_loads_and_takes_any_length(name, tmp_path):
    inputs = keras.Input((None, 8))
    outputs = MAKERS[name](dropout=0.1)(inputs, return_attention_scores=True)
    model = keras.Model(inputs, outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[1].get_config() == model.layers[1].get_config()
    for length in (1, 9, 20):
        for a, b in zip(model(text(2, length)), loaded(text(2, length)), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", BLOCKWISE)
def test_blockwise_saves_and_loads(name, tmp_path):
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, MAKERS[name](block_size=4)(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[1].block_size == 4
    np.testing.assert_array_equal(model(text()), loaded(text()))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("length", [None, 7])
def test_symbolic_shapes_are_the_real_ones(name, length):
    layer = MAKERS[name](dtype="mixed_float16")
    output, scores = layer(keras.Input((length, 8)), return_attention_scores=True)
    found, found_scores = layer(text(3, 7), return_attention_scores=True)
    known = (length,) * (len(found_scores.shape) - (2 if len(found_scores.shape) == 4 else 1))
    assert output.shape == (None, length, 8)
    assert scores.shape[-2:] == known
    assert len(scores.shape) == len(found_scores.shape)
    assert (output.dtype, scores.dtype) == (found.dtype, found_scores.dtype)
    assert found.shape == (3, 7, 8)
    assert found_scores.shape[-2:] == (7, 7)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", MAKERS)
def test_mixed_precision_stays_close_and_finite(name, policy):
    exact = made(name)
    mixed = MAKERS[name](dtype=policy)
    mixed.build((None, None, 8))
    mixed.set_weights(exact.get_weights())
    mask = np.array([[1, 1, 1, 0, 0, 0], [0] * 6], bool)[:, None]
    x = tf.constant(text())
    results = []
    for layer in (mixed, exact):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, attention_mask=mask)
            loss = tf.reduce_sum(tf.cast(y, "float32") ** 2)
        results.append((y, tape.gradient(loss, x)))
    (y, gradient), (expected, expected_gradient) = results
    assert y.dtype == policy.removeprefix("mixed_")
    tolerance = 0.01 if policy == "mixed_float16" else 0.08
    largest = np.abs(expected).max()
    np.testing.assert_allclose(tf.cast(y, "float32"), expected, atol=tolerance * largest)
    largest = np.abs(expected_gradient).max()
    np.testing.assert_allclose(gradient, expected_gradient, atol=3 * tolerance * largest)


@pytest.mark.parametrize("name", MAKERS)
def test_dropout_drops_only_in_training(name):
    layer = MAKERS[name](dropout=0.5)
    np.testing.assert_array_equal(layer(text()), layer(text(), training=False))
    assert np.abs(layer(text(), training=True) - layer(text())).max() > 1e-3


def test_both_streams_drop_the_same_positions():
    """As XLNet has it: the sinusoids are dropped once, before the layers."""
    layer = layers.TwoStreamAttention(2, 4, position_dropout=0.5)
    content, query = layer(text(), text(), training=True)
    np.testing.assert_allclose(content, query, atol=1e-6)
    assert np.abs(content - layer(text())).max() > 1e-3


@pytest.mark.parametrize("name", MAKERS)
def test_training_without_dropout_is_inference(name):
    """Also with lengths that the graph does not know, where fewer positions are projected."""
    layer = made(name)
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, layer(inputs))
    step = tf.function(
        lambda x: model(x, training=True), input_signature=[tf.TensorSpec((None, None, 8))]
    )
    for length in (1, 4, 15):
        expected = layer(text(2, length))
        np.testing.assert_allclose(step(text(2, length)), expected, atol=1e-5)
        np.testing.assert_allclose(model.predict(text(2, length), verbose=0), expected, atol=1e-5)


def converted(model, shape):
    """The model as TFLite builtins alone, its input of `shape`: the file, and what runs it."""

    def call(x):
        return {"y": model(x, training=False)}

    endpoints = {"serving_default": (call, [tf.TensorSpec(shape, name="x")])}
    content = to_tflite(model, endpoints, "float32")
    run = Interpreter(model_content=content).get_signature_runner()
    return content, lambda x: run(x=x)["y"]


@pytest.mark.parametrize("name", [*MAKERS, *(f"{name} in blocks" for name in BLOCKWISE)])
def test_converts_to_tflite_without_flex(name):
    options = {"block_size": 4} if name.endswith(" in blocks") else {}
    layer = made(name.removesuffix(" in blocks"), **options)
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, layer(inputs))
    _, run = converted(model, (1, None, 8))
    for length in (1, 3, 12, 7):
        np.testing.assert_allclose(run(text(1, length)), model(text(1, length)), atol=1e-4)


def test_positions_of_a_known_length_are_constants_in_tflite(tmp_path):
    """Wide as phones have it: TFLite's converter finds more constants where they are small."""
    inputs = keras.Input((128, 312))
    model = keras.Model(inputs, layers.RelativeAttention(12, 26)(inputs))
    x = np.random.default_rng(0).normal(size=(1, 128, 312)).astype("float32")
    content, run = converted(model, (1, 128, 312))
    np.testing.assert_allclose(run(x), model(x), atol=1e-4)
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    tree = tree_of(path)
    codes = [tree.operatorCodes[x.opcodeIndex].builtinCode for x in tree.subgraphs[0].operators]
    products = codes.count(schema.BuiltinOperator.FULLY_CONNECTED)
    assert products == 4  # of query, key, value and output


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((2, 5)), r"\(6, 6\)"),
        (np.ones((2, 6)), r"\(6, 6\), .* of each text as \(batch, 1, source\)"),
        (np.ones((2, 3, 6)), r"\(2, 6, 6\)"),
        (np.ones((2, 6, 7)), r"\(2, 6, 6\)"),
        (np.ones((3, 6, 6)), r"\(2, 6, 6\)"),
        (np.ones((2, 3, 6, 6)), r"\(2, [12], 6, 6\)"),
        (np.ones((2, 1, 6, 7)), r"\(2, [12], 6, 6\)"),
        (np.ones((2, 1, 1, 6, 6)), r"\(2, 6, 6\)"),
        (np.ones(6), r"\(2, 6, 6\)"),
    ],
)
@pytest.mark.parametrize("name", MAKERS)
def test_refuses_masks_that_do_not_fit(name, mask, message):
    with pytest.raises(ValueError, match=f"attention_mask has shape .* must be {message}"):
        MAKERS[name]()(text(), attention_mask=mask)


def test_a_mask_counts_the_memory():
    memory = text(2, 3)
    for name in ("relative", "two-stream"):
        with pytest.raises(ValueError, match=r"attention_mask has shape .* \(2, 6, 9\)"):
            MAKERS[name]()(text(), memory=memory, attention_mask=np.ones((2, 6, 6)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.RelativeAttention(0, 4), "num_heads=0 must be at least 1"),
        (lambda: layers.RelativeAttention(2, 4, clamp_length=0), "clamp_length=0"),
        (lambda: layers.TwoStreamAttention(2, 4, clamp_length=-1), "clamp_length=-1"),
        (lambda: layers.RelativeAttention(2, 4)(np.zeros((1, 3, 7))), "dim=7 must be even"),
        (lambda: layers.MultiHeadAttention(0, 4), "num_heads=0 must be at least 1"),
        (lambda: layers.DisentangledAttention(2, 4, terms=("c2c", "q2q")), "'q2q'"),
        (lambda: layers.DisentangledAttention(2, 4, terms="c2p"), "must be a tuple"),
        (lambda: layers.DisentangledAttention(2, 4, terms=()), "one or more"),
        (lambda: layers.DisentangledAttention(2, 4, max_distance=0), "max_distance=0"),
        (
            lambda: layers.DisentangledAttention(2, 4, max_distance=4, num_buckets=8),
            "num_buckets=8 must be at least 2 and below",
        ),
        (
            lambda: layers.DisentangledAttention(2, 4, max_distance=5)(
                text(), position_table=np.zeros((9, 8))
            ),
            "position_table has 9 rows, but must have 10",
        ),
        (lambda: layers.RelativePositionTable(-1), "max_distance=-1"),
        (lambda: layers.ScoreAttention("cosine"), "score='cosine' must be one of"),
        (lambda: layers.QuadraticPositionAttention(0, 3), "num_heads=0"),
        (lambda: layers.QuadraticPositionAttention(2, 3)(text()), "expected ndim=4, found ndim=3"),
        (lambda: layers.SharedEncoder(4, 2, 8, sharing="some"), "sharing='some'"),
        (lambda: layers.SharedEncoder(4, 2, 8, num_groups=3), "num_groups=3 must divide"),
        (lambda: layers.SharedEncoder(2, 3, 8)(text()), "num_heads=3 does not divide"),
        (lambda: layers.sinusoids(np.arange(3), 5), "dim=5 must be even"),
        (lambda: layers.SinusoidalPositionEncoding()(np.zeros((1, 2, 5))), "dim=5"),
        (lambda: layers.SinusoidalPositionEncoding(max_length=4).build((1, 2, 5)), "dim=5"),
        (lambda: layers.LearnedPositionEncoding(4)(text()), "length 6, .* max_length=4"),
        (lambda: layers.update_memory(None, text(), 0), "memory_length=0"),
    ],
)
def test_errors_name_the_argument_and_what_was_due(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("options", [{"strides": 2}, {"groups": 2}])
def test_convolutions_that_attention_is_not(options):
    convolution = keras.layers.Conv2D(4, 3, **options)
    convolution.build((None, 8, 8, 4))
    with pytest.raises(ValueError, match=f"{next(iter(options))} of the convolution="):
        layers.QuadraticPositionAttention.from_convolution(convolution)


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({"query_stream": np.zeros((2, 4, 8))}, "has 4 positions, content_stream 6"),
        (
            {"query_stream": np.zeros((2, 4, 8)), "target_mapping": np.zeros((2, 4, 5))},
            r"query_stream has 5 positions, content_stream 6",
        ),
        ({"segment_mask": np.ones((2, 6, 5))}, r"segment_mask has shape .* \(2, 6, 6\)"),
        (
            {"query_stream": np.zeros((2, 6, 8)), "query_attention_mask": np.ones((2, 6, 5))},
            r"query_attention_mask has shape .* \(2, 6, 6\)",
        ),
    ],
)
def test_two_streams_refuse_what_does_not_fit(streams, message):
    with pytest.raises(ValueError, match=message):
        layers.TwoStreamAttention(2, 4)(text(), **streams)


STATES = np.zeros((2, 6, 8), "float32")
FLAT = np.zeros((6, 8), "float32")
OF_STATES = {
    "plain": (lambda: layers.MultiHeadAttention(2, 4), ("query", "value", "key")),
    "relative": (lambda: layers.RelativeAttention(2, 4), ("query", "value", "key")),
    "joint": (MAKERS["DeBERTa v1"], ("query", "value", "key")),
    "score": (layers.ScoreAttention, ("query", "value", "key")),
    "two-stream": (MAKERS["two-stream"], ("content_stream", "query_stream")),
    "encoder": (lambda: layers.EncoderBlock(2, 12), ("inputs", "value")),
    "shared": (lambda: layers.SharedEncoder(2, 2, 12), ("inputs",)),
    "decoder": (lambda: layers.DecoderBlock(2, 12), ("inputs", "encoder_outputs")),
    "streams": (lambda: layers.TwoStreamBlock(2, 12), ("content_stream", "query_stream")),
}


@pytest.mark.parametrize("name", OF_STATES)
def test_states_have_three_axes(name):
    make, tensors = OF_STATES[name]
    for wrong in tensors:
        built, given = make(), dict.fromkeys(tensors, STATES)
        built(**given)
        for layer in (make(), built):
            with pytest.raises(ValueError, match=r"has shape \(6, 8\), but must have 3"):
                layer(**given | {wrong: FLAT})


def test_a_norm_is_over_several_axes():
    assert layers.LayerNormalization(axis=(-2, 2))(STATES).shape == (2, 6, 8)


@pytest.mark.parametrize(("block", "count"), [(layers.EncoderBlock, 1), (layers.DecoderBlock, 2)])
def test_blocks_take_a_symbolic_mask_by_position(block, count):
    x = np.random.default_rng(0).random((count, 2, 6, 8)).astype("float32")
    seen = np.tri(6, dtype=bool)[None].repeat(2, 0)
    symbolic = [*(keras.Input((6, 8)) for _ in x), keras.Input((6, 6), dtype="bool")]
    layer = block(2, 12)
    model = keras.Model(symbolic, layer(*symbolic, return_attention_scores=True))
    due = layer(*x, attention_mask=seen, return_attention_scores=True)
    for a, b in zip(model([*x, seen]), due, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_an_image_takes_a_symbolic_mask():
    inputs, mask = keras.Input((2, 3, 5)), keras.Input((6, 6), dtype="bool")
    layer = layers.QuadraticPositionAttention(2, 4)
    model = keras.Model([inputs, mask], layer(inputs, attention_mask=mask))
    x, seen = np.random.default_rng(0).random((1, 2, 3, 5)), np.tri(6, dtype=bool)[None]
    np.testing.assert_allclose(model([x, seen]), layer(x, attention_mask=seen), atol=1e-6)


@pytest.mark.parametrize("name", MAKERS)
def test_unknown_call_arguments_are_refused(name):
    with pytest.raises(TypeError, match="causal_mask_please"):
        MAKERS[name]()(text(), causal_mask_please=True)
    with pytest.raises(ValueError, match="head_count"):
        MAKERS[name](head_count=3)
