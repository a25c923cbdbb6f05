"""Attention in blocks of keys against the same layer with all keys at once."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.functional.attention import Scores, blockwise_attention
from tfnlp.functional.attention_tiles import TilePlan
from tfnlp.functional.relative_scores import content_to_position, position_to_content
from tfnlp.layers import (
    DecoderBlock,
    DisentangledAttention,
    EncoderBlock,
    MultiHeadAttention,
    RelativeAttention,
    SharedEncoder,
    TwoStreamAttention,
    TwoStreamBlock,
)

LAYERS = {
    "plain": lambda **kw: MultiHeadAttention(2, 4, **kw),
    "relative": lambda **kw: RelativeAttention(2, 4, **kw),
    "disentangled": lambda **kw: DisentangledAttention(
        2, 4, terms=("c2c", "c2p", "p2c", "p2p"), max_distance=9, num_buckets=4, **kw
    ),
}


def run(layer, x, mask, weights=None, **kwargs):
    """The output, and the gradients by the input and by every weight."""
    x = tf.constant(x)
    if not layer.built:
        layer.build(x.shape)
    if weights is not None:
        layer.set_weights(weights)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, attention_mask=mask, training=True, **kwargs)
        pull = tf.reshape(tf.cos(tf.range(tf.size(y), dtype=tf.float32)), tf.shape(y))
        loss = tf.reduce_sum(y * pull)
    variables = [x, *(v.value for v in layer.trainable_variables)]
    return [y, *(tf.convert_to_tensor(g) for g in tape.gradient(loss, variables))]


def check_equal(found, expected):
    largest = max(np.abs(g).max() for g in expected[1:])
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    for a, b in zip(found[1:], expected[1:], strict=True):
        assert np.abs(a - b).max() <= 1e-4 * max(np.abs(b).max(), 1e-2 * largest)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("length", "block_size"), [(13, 4), (64, 15), (270, 256)])
def test_equals_attention_to_all_keys_at_once(name, causal, masked, length, block_size):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, length, 8)).astype("float32")
    mask = None
    if masked:
        mask = rng.random((2, length, length)) < 0.6
        mask[0, 0] = False  # one query that may see nothing
        mask[1, :, -1] = True
    whole, blocks = LAYERS[name](), LAYERS[name](block_size=block_size)
    whole.build(x.shape)
    weights = [rng.normal(size=w.shape, scale=0.4).astype("float32") for w in whole.weights]
    expected = run(whole, x, mask, weights, use_causal_mask=causal)
    found = run(blocks, x, mask, weights, use_causal_mask=causal)
    check_equal(found, expected)


@pytest.mark.parametrize("length", [64, 50])  # the last queries are padding then
def test_tiles_beyond_the_largest_distance_are_known(length):
    """Tiles are numbered from corner to corner; on the diagonal and beside it offsets differ."""
    rows = np.clip(np.arange(1 - length, 64), -9, 9) + 9
    x, table = np.zeros((1, 2, 64, 4), "float32"), np.zeros((2, 19, 4), "float32")
    terms = [
        content_to_position(x[:, :, :length], table, rows),
        position_to_content(x, table, rows),
    ]
    plan = TilePlan(16, (length, 64), terms, find_far=True)
    np.testing.assert_array_equal(plan.far, [True, True, False, False, False, True, True])


def test_relative_attention_reads_its_memory_in_blocks():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 9, 8)).astype("float32")
    memory = rng.normal(size=(2, 7, 8)).astype("float32")
    whole, blocks = LAYERS["relative"](), LAYERS["relative"](block_size=4)
    expected = run(whole, x, None, memory=memory)
    found = run(blocks, x, None, whole.get_weights(), memory=memory)
    check_equal(found, expected)


def two_streams(length, seed=0):
    """Inputs of two streams with a memory of 6: 3 predictions, masks and segments."""
    rng = np.random.default_rng(seed)
    masks = rng.random((3, 2, length, length + 6)) < 0.6
    masks[0, 0, 0] = False  # a position that may see nothing
    return {
        "content_stream": rng.normal(size=(2, length, 8)).astype("float32"),
        "query_stream": rng.normal(size=(2, 3, 8)).astype("float32"),
        "target_mapping": np.eye(length, dtype="float32")[rng.integers(0, length, (2, 3))],
        "memory": rng.normal(size=(2, 6, 8)).astype("float32"),
        "segment_mask": masks[2],
        "attention_mask": masks[0],
        "query_attention_mask": masks[1],
    }


def gradients(layer, inputs, training=True):
    """Of the floating inputs and the weights, once both streams' outputs are squared."""
    inputs = {name: tf.convert_to_tensor(x) for name, x in inputs.items()}
    watched = [x for name, x in inputs.items() if "stream" in name]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = layer(**inputs, training=training)
        loss = sum(tf.reduce_sum(y**2) for y in keras.tree.flatten(outputs))
    variables = [v.value for v in layer.trainable_variables]
    found = tape.gradient(loss, watched + variables, unconnected_gradients="zero")
    return [keras.tree.flatten(outputs)[0], *(tf.convert_to_tensor(g) for g in found)]


@pytest.mark.parametrize("segments", [False, True])
def test_two_streams_in_blocks(segments):
    whole, blocks = (TwoStreamAttention(2, 4, block_size=size) for size in (None, 4))
    for layer in (whole, blocks):
        layer.build((2, None, 8))
    blocks.set_weights(whole.get_weights())

    inputs = two_streams(8)
    if not segments:
        del inputs["segment_mask"]
    of_states = ("content_stream", "query_stream", "memory")
    open_length = {
        name: tf.TensorSpec((2, None, 8 if name in of_states else None), x.dtype)
        for name, x in inputs.items()
    }
    in_a_graph = tf.function(
        lambda inputs: gradients(blocks, inputs), input_signature=[open_length]
    )
    check_equal(gradients(blocks, inputs), gradients(whole, inputs))
    for length in (5, 9) if segments else ():
        inputs = two_streams(length)
        expected = gradients(whole, inputs)
        check_equal(in_a_graph(keras.tree.map_structure(tf.constant, inputs)), expected)
        np.testing.assert_allclose(blocks(**inputs)[1], whole(**inputs)[1], atol=1e-5)


def test_one_row_of_segments_is_for_all_queries():
    inputs = two_streams(9)
    inputs["segment_mask"] = inputs["segment_mask"][:, :1]
    whole, blocks = (TwoStreamAttention(2, 4, block_size=size) for size in (None, 4))
    blocks.build((2, 9, 8))
    whole.build((2, 9, 8))
    whole.set_weights(blocks.get_weights())
    check_equal(gradients(blocks, inputs), gradients(whole, inputs))


BLOCKS = {
    "encoder": (EncoderBlock, 1),
    "shared": (lambda *args, **kw: SharedEncoder(2, *args, **kw), 1),
    "decoder": (DecoderBlock, 2),
    "two-stream": (TwoStreamBlock, 2),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_pass_their_block_size_on(name, tmp_path):
    make, count = BLOCKS[name]
    x = np.random.default_rng(0).normal(size=(count, 2, 7, 8)).astype("float32")
    symbolic = [keras.Input((7, 8)) for _ in x]
    whole, blocks = (make(2, 12, block_size=size, name="block") for size in (None, 4))
    model = keras.Model(symbolic, blocks(*symbolic))
    whole.build(*(x.shape[1:] for _ in x)) if name == "decoder" else whole.build(x.shape[1:])
    whole.set_weights(blocks.get_weights())
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").get_layer("block")
    names = {"decoder": ("inputs", "encoder_outputs")}.get(name)
    names = names or (("content_stream", "query_stream") if count == 2 else ("inputs",))
    inputs = dict(zip(names, x, strict=True))
    for training in (False, True):
        expected = gradients(whole, inputs, training)
        check_equal(gradients(blocks, inputs, training), expected)
        check_equal(gradients(loaded, inputs, training), expected)
    for given in (x, symbolic):
        with pytest.raises(ValueError, match="block_size=4 never holds the scores"):
            loaded(*given, return_attention_scores=True)


def test_a_block_and_its_attention_have_one_block_size():
    with pytest.raises(ValueError, match=r"block_size=8 does not fit .* block_size=4"):
        EncoderBlock(2, 8, attention=MultiHeadAttention(2, 4, block_size=4), block_size=8)
    block = EncoderBlock(2, 8, attention=MultiHeadAttention(2, 4, block_size=4))
    assert block.block_size == 4
    assert EncoderBlock.from_config(block.get_config()).attention.block_size == 4


def test_cross_attention_of_unequal_lengths():
    rng = np.random.default_rng(0)
    query = rng.normal(size=(2, 5, 8)).astype("float32")
    value = rng.normal(size=(2, 11, 6)).astype("float32")
    mask = np.arange(11)[None, None] < np.array([11, 4])[:, None, None]
    whole, blocks = LAYERS["plain"](), LAYERS["plain"](block_size=3)
    expected = whole(query, value, attention_mask=mask)
    blocks.build(query.shape, value.shape)
    blocks.set_weights(whole.get_weights())
    np.testing.assert_allclose(blocks(query, value, attention_mask=mask), expected, atol=1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_dynamic_length_in_a_graph(name):
    layer = LAYERS[name](block_size=4)
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, layer(inputs))
    whole = LAYERS[name]()
    whole.build((None, None, 8))
    whole.set_weights(layer.get_weights())

    @tf.function(input_signature=[tf.TensorSpec((None, None, 8))])
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(model(x, training=True) ** 2)
        return tape.gradient(y, x)

    for length in (1, 6, 9, 33):
        x = tf.random.normal((2, length, 8))
        np.testing.assert_allclose(model(x), whole(x), atol=1e-5)
        expected = run_gradient(whole, x)
        np.testing.assert_allclose(gradient(x), expected, atol=1e-4 * np.abs(expected).max())


def run_gradient(layer, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(layer(x, training=True) ** 2)
    return tape.gradient(y, x)


def test_gradient_drops_what_the_forward_pass_dropped():
    """Against differences: with another draw in the gradient they would not agree."""
    layer = MultiHeadAttention(2, 4, dropout=0.5, block_size=3)
    x = tf.random.normal((1, 7, 8))
    layer(x)
    direction = tf.random.normal(x.shape)
    generator = layer.dropout_layer.seed_generator
    state = generator.state.numpy()

    def loss(x):
        generator.state.assign(state)
        return tf.reduce_sum(layer(x, training=True) ** 2)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    slope = float(tf.reduce_sum(tape.gradient(y, x) * direction))
    step = 1e-3
    measured = (loss(x + step * direction) - loss(x - step * direction)) / (2 * step)
    assert abs(float(measured) - slope) <= 0.01 * abs(slope) + 0.01
    assert abs(float(loss(x)) - float(tf.reduce_sum(layer(x) ** 2))) > 1e-3
    generator.state.assign(state + 1)
    assert abs(float(tf.reduce_sum(layer(x, training=True) ** 2)) - float(y)) > 1e-3


def test_every_tile_drops_others():
    """Uniform attention to unit vectors gives the weights themselves."""
    query, value = np.zeros((8, 4, 8, 4), "float32"), np.eye(8, dtype="float32")
    value = np.broadcast_to(value, (8, 4, 8, 8))

    def attend():
        dropout = keras.layers.Dropout(0.5, seed=3)
        return blockwise_attention(Scores(query, query), value, dropout=dropout, block_size=4)

    weights = attend()
    kept = np.asarray(weights) > 0
    np.testing.assert_allclose(np.asarray(weights)[kept], 0.25, atol=1e-6)
    tiles = [kept[:, :, i : i + 4, j : j + 4] for i in (0, 4) for j in (0, 4)]
    for a, b in itertools.combinations(tiles, 2):
        assert 0.4 < np.mean(a != b) < 0.6  # 512 weights, of which half differ
    np.testing.assert_array_equal(attend(), weights)


def test_dropout_keeps_the_mean():
    layer = MultiHeadAttention(1, 4, dropout=0.3, block_size=5, use_bias=False)
    x = tf.random.normal((1, 12, 8))
    expected = layer(x)
    # Every row of a batch has its own dropout.
    mean = np.mean(layer(tf.repeat(x, 400, axis=0), training=True), axis=0, keepdims=True)
    assert np.abs(mean - expected).max() < 0.15 * np.abs(expected).max()


def test_scores_cannot_be_returned():
    layer = MultiHeadAttention(2, 4, block_size=4)
    with pytest.raises(ValueError, match="return_attention_scores=True, but block_size=4"):
        layer(np.zeros((1, 6, 8)), return_attention_scores=True)
    with pytest.raises(ValueError, match="block_size=0 must be at least 1"):
        MultiHeadAttention(2, 4, block_size=0)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", LAYERS)
def test_mixed_precision(name, policy):
    x = np.random.default_rng(0).normal(size=(2, 10, 8)).astype("float32")
    exact = LAYERS[name]()
    exact.build(x.shape)
    mixed = LAYERS[name](block_size=4, dtype=policy)
    tolerance = 0.02 if policy == "mixed_float16" else 0.1
    found = run_cast(mixed, x, exact.get_weights())
    expected = run_cast(exact, x, exact.get_weights())
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance * np.abs(b).max())


def run_cast(layer, x, weights):
    x = tf.constant(x)
    if not layer.built:
        layer.build(x.shape)
    layer.set_weights(weights)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(layer(x), "float32")
        loss = tf.reduce_sum(y**2)
    return y, tape.gradient(loss, x)
