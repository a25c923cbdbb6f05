"""Every attention layer against a loop in NumPy, masked and not, at several lengths."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import witnesses
from tfnlp.layers import (
    DisentangledAttention,
    QuadraticPositionAttention,
    RelativeAttention,
    RelativeBiases,
    RelativePositionTable,
    ScoreAttention,
    TwoStreamAttention,
    relative_shift,
)


def inputs(batch, length, width, source=None, masked=True, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(batch, length, width)).astype("float32")
    mask = np.ones((batch, length, source or length), bool)
    if masked:
        mask = rng.random(mask.shape) < 0.7
        mask[0, 0] = False  # a query that may see nothing
    return x, mask


def randomise(layer, seed=0):
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(size=w.shape, scale=0.5) for w in layer.weights])


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("memory_length", [0, 4])
@pytest.mark.parametrize("length", [1, 2, 7, 33])
def test_relative(length, memory_length, masked):
    x, mask = inputs(2, length, 12, length + memory_length, masked)
    memory = inputs(2, memory_length, 12, seed=1)[0] if memory_length else None
    layer = RelativeAttention(3, 4, clamp_length=5, use_bias=True)
    layer.build(x.shape)
    randomise(layer)
    found = layer(x, memory=memory, attention_mask=mask, return_attention_scores=True)
    for a, b in zip(found, witnesses.relative(layer, x, memory, mask), strict=True):
        near(a, b)


def test_relative_causal_equals_a_causal_mask():
    x, _ = inputs(2, 9, 12)
    memory = inputs(2, 4, 12, seed=1)[0]
    layer = RelativeAttention(3, 4)
    causal = np.tri(9, 13, 4, dtype=bool)
    expected, expected_scores = layer(
        x, memory=memory, attention_mask=causal, return_attention_scores=True
    )
    found, scores = layer(x, memory=memory, use_causal_mask=True, return_attention_scores=True)
    near(found, expected)
    near(scores * causal, expected_scores * causal)


@pytest.mark.parametrize(("length", "source_length"), [(7, 7), (3, 8), (8, 3)])
def test_relative_positions_of_both_directions_at_once_or_each(length, source_length):
    """With dropout every sinusoid is projected, without it half of them are."""
    x, _ = inputs(2, length, 12)
    value = inputs(2, source_length, 12, seed=1)[0]
    layer = RelativeAttention(3, 4, clamp_length=4, position_dropout=1e-9)
    expected = layer(x, value, training=True)
    near(layer(x, value), expected)


def test_relative_biases_are_shared():
    x, mask = inputs(2, 5, 12)
    biases = RelativeBiases(3, 4)
    u, v = biases(x)
    first, second = RelativeAttention(3, 4), RelativeAttention(3, 4)
    for layer in (first, second):
        found = layer(x, content_bias=u, position_bias=v, attention_mask=mask)
        assert layer.content_bias is None and len(layer.weights) == 5
        parts = vars(layer) | {"content_bias": u, "position_bias": v}
        near(found, witnesses.relative(types.SimpleNamespace(**parts), x, None, mask)[0])


def test_memory_has_no_gradient():
    x, _ = inputs(1, 3, 8)
    memory = tf.random.normal((1, 2, 8))
    for layer in (RelativeAttention(2, 4), TwoStreamAttention(2, 4)):
        with tf.GradientTape() as tape:
            tape.watch(memory)
            y = layer(x, memory=memory)
        assert tape.gradient(y, memory) is None


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("memory_length", [0, 3])
@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_two_streams(length, memory_length, masked):
    x, mask = inputs(2, length, 12, length + memory_length, masked)
    g, query_mask = inputs(2, length, 12, length + memory_length, masked, seed=2)
    memory = inputs(2, memory_length, 12, seed=1)[0] if memory_length else None
    same = np.random.default_rng(3).random(mask.shape) < 0.5
    layer = TwoStreamAttention(3, 4)
    layer.build(x.shape)
    randomise(layer)
    found, scores = layer(
        x,
        g,
        memory=memory,
        segment_mask=same,
        attention_mask=mask,
        query_attention_mask=query_mask,
        return_attention_scores=True,
    )
    for i, (stream, seen) in enumerate(((x, mask), (g, query_mask))):
        expected = witnesses.two_streams(layer, stream, x, memory, same, seen)
        near(found[i], expected[0])
        near(scores[i], expected[1])


ALL_TERMS = ("c2c", "c2p", "p2c", "p2p")
SUBSETS = [
    ("c2c",),
    ("c2p",),
    ("p2c",),
    ("p2p",),
    ("c2c", "p2p"),
    ("c2c", "c2p", "p2c"),
    ALL_TERMS,
]


@pytest.mark.parametrize("terms", SUBSETS, ids="+".join)
@pytest.mark.parametrize("buckets", [None, 4])
@pytest.mark.parametrize("share", [False, True])
def test_disentangled_terms(terms, buckets, share):
    x, mask = inputs(2, 17, 12)
    layer = DisentangledAttention(
        3, 4, terms=terms, max_distance=7, num_buckets=buckets, share_att_key=share
    )
    layer.build(x.shape)
    randomise(layer)
    table = np.zeros((2, 12)) if terms == ("c2c",) else layer.own_table.table.numpy()
    found = layer(x, attention_mask=mask, return_attention_scores=True)
    for a, b in zip(found, witnesses.disentangled(layer, x, table, mask), strict=True):
        near(a, b)


@pytest.mark.parametrize("length", [1, 2, 7, 40])
@pytest.mark.parametrize("masked", [False, True])
def test_disentangled_lengths(length, masked):
    x, mask = inputs(2, length, 12, masked=masked)
    layer = DisentangledAttention(3, 4, max_distance=16, num_buckets=6)
    layer.build(x.shape)
    randomise(layer)
    found = layer(x, attention_mask=mask, return_attention_scores=True)
    expected = witnesses.disentangled(layer, x, layer.own_table.table.numpy(), mask)
    for a, b in zip(found, expected, strict=True):
        near(a, b)


def test_disentangled_joint_projection_is_three_projections_head_by_head():
    x, mask = inputs(2, 9, 12)
    joint = DisentangledAttention(3, 4, max_distance=5, joint_projection=True)
    table = inputs(1, 10, 12, seed=1)[0][0]
    joint.build(x.shape, position_table_shape=table.shape)
    randomise(joint)
    assert joint.position_key.bias is None and joint.position_query.bias is not None
    apart = DisentangledAttention(3, 4, max_distance=5)
    apart.build(x.shape, position_table_shape=table.shape)
    kernel = joint.joint.kernel.numpy().reshape(12, 3, 3, 4)  # (D, N, q k v, H)
    zeros = np.zeros(12)
    biases = (joint.query_bias.numpy(), zeros, joint.value_bias.numpy())
    for i, (name, bias) in enumerate(zip(("query", "key", "value"), biases, strict=True)):
        getattr(apart, name).set_weights([kernel[:, :, i].reshape(12, 12), bias])
    apart.position_key.set_weights([joint.position_key.kernel.numpy(), zeros])
    apart.position_query.set_weights(joint.position_query.get_weights())
    apart.output_dense.set_weights(joint.output_dense.get_weights())
    expected = apart(x, position_table=table, attention_mask=mask)
    near(joint(x, position_table=table, attention_mask=mask), expected)
    # Another input for the queries takes the kernel apart.
    other = inputs(2, 9, 12, seed=4)[0]
    near(joint(other, x, position_table=table), apart(other, x, position_table=table))


def test_disentangled_own_table_is_normalised_on_request():
    x, mask = inputs(2, 9, 12)
    layer = DisentangledAttention(3, 4, max_distance=5, normalize_positions=True)
    layer.build(x.shape)
    randomise(layer)
    norm = layer.own_table.norm
    table = layer.own_table.table.numpy()
    table = (table - table.mean(1, keepdims=True)) / np.sqrt(
        table.var(1, keepdims=True) + 1e-7
    ) * norm.gamma.numpy() + norm.beta.numpy()
    found = layer(x, attention_mask=mask)
    near(found, witnesses.disentangled(layer, x, table, mask)[0])
    shared = RelativePositionTable(5, normalize=True)
    shared.build(x.shape)
    shared.set_weights(layer.own_table.get_weights())
    near(shared(x), table)


@pytest.mark.parametrize("value_dim", [None, 5])
@pytest.mark.parametrize("masked", [False, True])
def test_quadratic(value_dim, masked):
    rng = np.random.default_rng(0)
    image = rng.normal(size=(2, 4, 5, 3)).astype("float32")
    mask = np.ones((2, 20, 20), bool)
    if masked:
        mask = rng.random(mask.shape) < 0.6
        mask[0, 0] = False
    layer = QuadraticPositionAttention(3, 6, value_dim=value_dim)
    layer.build(image.shape)
    randomise(layer)
    layer.widths.assign([0.1, 0.7, 2.0])
    expected, expected_scores = witnesses.quadratic(layer, image, mask)
    found, scores = layer(
        image, attention_mask=mask if masked else None, return_attention_scores=True
    )
    near(found, expected)
    near(scores, np.broadcast_to(expected_scores, scores.shape))
    if not masked:  # along rows and columns, or all pixels at once: the same
        near(layer(image, attention_mask=mask), found)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 3},
        {"kernel_size": (1, 5), "activation": "relu"},
        {"kernel_size": (5, 3), "use_bias": False},
        {"kernel_size": 3, "dilation_rate": 2},
        {"kernel_size": 2},
    ],
)
def test_attention_that_equals_a_convolution(options):
    """Theorem 1 of Cordonnier et al. at every pixel whose window is inside the image."""
    convolution = keras.layers.Conv2D(
        7, padding="same", bias_initializer="random_normal", **options
    )
    image = np.random.default_rng(0).normal(size=(2, 12, 11, 4)).astype("float32")
    expected = convolution(image).numpy()
    layer = QuadraticPositionAttention.from_convolution(convolution)
    found = layer(image).numpy()
    rows, columns = (
        (size - 1) * dilation
        for size, dilation in zip(convolution.kernel_size, convolution.dilation_rate, strict=True)
    )
    top, left = rows // 2, columns // 2
    inside = (
        slice(None),
        slice(top, 12 - (rows - top) or None),
        slice(left, 11 - (columns - left) or None),
    )
    assert found[inside].size > 100
    np.testing.assert_allclose(found[inside], expected[inside], atol=1e-4)
    if rows:  # Zeros beyond the border are what attention cannot read.
        assert np.abs(found[:, 0] - expected[:, 0]).max() > 1e-2


def test_quadratic_gradients_match_the_convolution_s():
    convolution = keras.layers.Conv2D(3, 3, padding="same")
    image = tf.random.normal((1, 9, 9, 2))
    convolution(image)
    layer = QuadraticPositionAttention.from_convolution(convolution)
    inside = np.zeros((1, 9, 9, 1), "float32")
    inside[:, 1:-1, 1:-1] = 1
    gradients = []
    for f, kernel in ((convolution, convolution.kernel), (layer, layer.output_dense.kernel)):
        with tf.GradientTape() as tape:
            tape.watch(image)
            y = tf.reduce_sum((f(image) * inside) ** 2)
        gradients.append(tape.gradient(y, [image, kernel.value]))
    for a, b in zip(*gradients, strict=True):
        a, b = a.numpy().ravel(), b.numpy().ravel()
        assert np.abs(a - b).max() <= 1e-4 * np.abs(a).max()


@pytest.mark.parametrize("score", ["dot", "general", "concat"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 33])
def test_recurrent_scores(score, masked, length):
    query, mask = inputs(2, length, 6, 5, masked)
    value = inputs(2, 5, 4, seed=1)[0]
    key = inputs(2, 5, 6, seed=2)[0]
    layer = ScoreAttention(score)
    layer.build(query.shape, value.shape, key.shape)
    if layer.weights:
        randomise(layer)
    found = layer(query, value, key, attention_mask=mask, return_attention_scores=True)
    expected = witnesses.recurrent(layer, query, value, key, mask)
    for a, b in zip(found, expected, strict=True):
        near(a, b)


def test_recurrent_scores_equal_those_of_keras():
    query, value = inputs(2, 3, 6)[0], inputs(2, 5, 6, seed=1)[0]
    near(ScoreAttention("dot")(query, value), keras.layers.Attention()([query, value]))
    ours, theirs = ScoreAttention("concat"), keras.layers.AdditiveAttention()
    ours(query, value), theirs([query, value])
    ours.query.kernel.assign(np.eye(6))
    ours.key.kernel.assign(np.eye(6))
    ours.direction.kernel.assign(theirs.scale.numpy()[:, None])
    near(ours(query, value), theirs([query, value]))


@pytest.mark.parametrize(("rows", "source"), [(1, 1), (1, 5), (5, 1), (2, 2), (7, 4), (4, 9)])
def test_relative_shift_and_its_gradient(rows, source):
    x = tf.random.normal((2, 3, rows, rows + source))
    pull = tf.random.normal((2, 3, rows, source))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = relative_shift(x, source)
        loss = tf.reduce_sum(y * pull)
    expected, gradient = np.zeros(y.shape), np.zeros(x.shape)
    for i in range(rows):
        for j in range(source):
            expected[..., i, j] = x[..., i, rows - 1 - i + j]
            gradient[..., i, rows - 1 - i + j] += pull[..., i, j]
    np.testing.assert_array_equal(y, expected.astype("float32"))
    np.testing.assert_array_equal(tape.gradient(loss, x), gradient.astype("float32"))


def test_relative_shift_of_causal_columns():
    x = tf.random.normal((1, 4, 4, 7))
    y = relative_shift(x, 6).numpy()
    for i in range(4):
        for j in range(2 + i + 1):
            np.testing.assert_array_equal(y[..., i, j], x[..., i, 3 - i + j])
    with pytest.raises(ValueError, match="last axis must be above source_length=7"):
        relative_shift(x, 7)
