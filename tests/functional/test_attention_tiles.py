"""Attention in blocks of keys against the same layer with all keys at once."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.functional.attention import Scores, blockwise_attention
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
        2, 4, terms=("c2c", "c2p", "p2c", "p2p"), max_distance=9, num_buckets=3, **kw
    ),
}


def run(layer, inputs, weights=None, training=True, **options):
    """The first output, and the gradients by the floating inputs and by every weight."""
    inputs = {name: tf.convert_to_tensor(x) for name, x in inputs.items()}
    shapes = [x.shape for name, x in inputs.items() if name in ("query", "content_stream")]
    if not layer.built:
        layer.build(*shapes)
    if weights is not None:
        layer.set_weights(weights)
    watched = [x for x in inputs.values() if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = keras.tree.flatten(layer(**inputs, training=training, **options))
        loss = sum(tf.reduce_sum(tf.cast(y, "float32") ** 2) for y in outputs)
    variables = watched + [v.value for v in layer.trainable_variables]
    gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
    return [outputs[0], *(tf.convert_to_tensor(x) for x in gradients)]


def check_equal(found, expected):
    largest = max(np.abs(g).max() for g in expected[1:])
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    for a, b in zip(found[1:], expected[1:], strict=True):
        assert np.abs(a - b).max() <= 1e-4 * max(np.abs(b).max(), 1e-2 * largest)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(
    ("length", "block_size", "masked", "causal"),
    [(13, 4, False, False), (13, 4, True, True), (64, 15, True, False), (270, 256, False, True)],
)
def test_equals_attention_to_all_keys_at_once(name, length, block_size, masked, causal):
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
    asked = {"attention_mask": mask, "use_causal_mask": causal}
    expected = run(whole, {"query": x}, weights, **asked)
    check_equal(run(blocks, {"query": x}, weights, **asked), expected)


def two_streams(length):
    """Inputs of two streams with a memory of 6: 3 predictions, masks and segments."""
    rng = np.random.default_rng(0)
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


def test_two_streams_in_blocks():
    whole, blocks = (TwoStreamAttention(2, 4, block_size=size) for size in (None, 4))
    blocks.build((2, None, 8))
    inputs = two_streams(9)
    weights = blocks.get_weights()
    check_equal(run(blocks, inputs), run(whole, inputs, weights))
    np.testing.assert_allclose(blocks(**inputs)[1], whole(**inputs)[1], atol=1e-5)
    inputs["segment_mask"] = inputs["segment_mask"][:, :1]  # one row, for all queries
    check_equal(run(blocks, inputs), run(whole, inputs))


BLOCKS = {
    "encoder": (EncoderBlock, ["inputs"]),
    "shared": (lambda *args, **kw: SharedEncoder(2, *args, **kw), ["inputs"]),
    "decoder": (DecoderBlock, ["inputs", "encoder_outputs"]),
    "two-stream": (TwoStreamBlock, ["content_stream", "query_stream"]),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_pass_their_block_size_on(name, tmp_path):
    make, names = BLOCKS[name]
    x = np.random.default_rng(0).normal(size=(2, 2, 7, 8)).astype("float32")
    inputs = dict(zip(names, x, strict=False))
    symbolic = [keras.Input((7, 8)) for _ in inputs]
    whole, blocks = (make(2, 12, block_size=size, name="block") for size in (None, 4))
    model = keras.Model(symbolic, blocks(*symbolic))
    whole(**inputs)
    whole.set_weights(blocks.get_weights())
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").get_layer("block")
    check_equal(run(loaded, inputs), run(whole, inputs))
    for values in (inputs.values(), symbolic):
        with pytest.raises(ValueError, match="block_size=4 never holds the scores"):
            loaded(*values, return_attention_scores=True)


def test_a_block_and_its_attention_have_one_block_size():
    with pytest.raises(ValueError, match=r"block_size=8 does not fit .* block_size=4"):
        EncoderBlock(2, 8, attention=MultiHeadAttention(2, 4, block_size=4), block_size=8)
    block = EncoderBlock(2, 8, attention=MultiHeadAttention(2, 4, block_size=4))
    assert block.block_size == 4
    assert EncoderBlock.from_config(block.get_config()).attention.block_size == 4


@pytest.mark.parametrize("name", ["plain", "disentangled"])
def test_dynamic_length_in_a_graph(name):
    whole, blocks = LAYERS[name](), LAYERS[name](block_size=4)
    for layer in (whole, blocks):
        layer.build((None, None, 8))
    blocks.set_weights(whole.get_weights())
    in_a_graph = tf.function(lambda x: run(blocks, {"query": x}))
    in_a_graph = in_a_graph.get_concrete_function(tf.TensorSpec((None, None, 8)))
    for length in (1, 9, 33):
        x = tf.random.normal((2, length, 8))
        check_equal(in_a_graph(x), run(whole, {"query": x}))


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


def test_scores_cannot_be_returned():
    layer = MultiHeadAttention(2, 4, block_size=4)
    with pytest.raises(ValueError, match="return_attention_scores=True, but block_size=4"):
        layer(np.zeros((1, 6, 8)), return_attention_scores=True)
    with pytest.raises(ValueError, match="block_size=0 must be at least 1"):
        MultiHeadAttention(2, 4, block_size=0)


@pytest.mark.parametrize(
    ("name", "policy", "tolerance"),
    [("relative", "mixed_float16", 0.02), ("disentangled", "mixed_bfloat16", 0.1)],
)
def test_mixed_precision(name, policy, tolerance):
    x = np.random.default_rng(0).normal(size=(2, 10, 8)).astype("float32")
    exact, mixed = LAYERS[name](), LAYERS[name](block_size=4, dtype=policy)
    expected = run(exact, {"query": x})[:2]
    found = run(mixed, {"query": x}, exact.get_weights())[:2]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(tf.cast(a, "float32"), b, atol=tolerance * np.abs(b).max())
