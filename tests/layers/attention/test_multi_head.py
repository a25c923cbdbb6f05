import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.functional.attention import attention, fused_attention
from tfnlp.layers import MultiHeadAttention


def by_loops(layer, query, value, mask):
    """Multi-head attention as its definition reads, one head, query and key at a time."""

    def project(dense, x):
        return x @ dense.kernel.numpy().astype("float64") + dense.bias.numpy()

    q, k, v = project(layer.query, query), project(layer.key, value), project(layer.value, value)
    batch, target, _ = q.shape
    size = layer.key_dim
    context = np.zeros((batch, target, layer.num_heads * size))
    scores = np.zeros((batch, layer.num_heads, target, k.shape[1]))
    for b in range(batch):
        for n in range(layer.num_heads):
            part = slice(n * size, (n + 1) * size)
            for t in range(target):
                s = np.array([q[b, t, part] @ row for row in k[b, :, part]]) / np.sqrt(size)
                scores[b, n, t] = s
                seen = mask[b, t]
                if seen.any():
                    e = np.exp(s - s[seen].max()) * seen
                    context[b, t, part] = (e / e.sum()) @ v[b, :, part]
    return project(layer.output_dense, context), scores


@pytest.mark.parametrize(("target", "source"), [(1, 1), (2, 5), (7, 7), (33, 20)])
def test_matches_loops_for_self_and_cross_attention_with_masked_rows(target, source):
    rng = np.random.default_rng(0)
    layer = MultiHeadAttention(3, 4)
    query = rng.normal(size=(2, target, 12)).astype("float32")
    value = rng.normal(size=(2, source, 10)).astype("float32")
    mask = rng.random((2, target, source)) < 0.7
    mask[0, 0] = False
    output, scores = layer(query, value, attention_mask=mask, return_attention_scores=True)
    expected, expected_scores = by_loops(layer, query, value, mask)
    np.testing.assert_allclose(output, expected, atol=1e-5)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"value_dim": 5},
        {"output_shape": 7, "use_bias": False},
        {"value_dim": 3, "output_shape": (6,), "dropout": 0.2, "kernel_regularizer": "l2"},
    ],
)
def test_takes_over_the_weights_of_keras_multi_head_attention(options):
    rng = np.random.default_rng(1)
    initializer = keras.initializers.RandomNormal(stddev=0.3, seed=0)
    theirs = keras.layers.MultiHeadAttention(4, 8, bias_initializer=initializer, **options)
    x = rng.normal(size=(2, 9, 16)).astype("float32")
    value, key = rng.normal(size=(2, 5, 12)), rng.normal(size=(2, 5, 10))
    theirs(x, value, key)
    ours = MultiHeadAttention.from_keras(theirs)
    mask = rng.random((2, 9, 5)) < 0.7
    mask[..., 0] = True
    found, expected = (f(x, value, key, attention_mask=mask) for f in (ours, theirs))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert (ours.value_dim, ours.dropout) == (options.get("value_dim", 8), theirs.dropout)
    assert (ours.kernel_regularizer is None) == ("kernel_regularizer" not in options)
    np.testing.assert_allclose(sum(ours.losses), sum(theirs.losses), rtol=1e-6)
    again = MultiHeadAttention.from_config(ours.get_config())
    again(x, value, key)
    assert [w.shape for w in again.weights] == [w.shape for w in ours.weights]


def test_takes_over_the_precision_of_keras_multi_head_attention():
    theirs = keras.layers.MultiHeadAttention(2, 4, dtype="mixed_bfloat16")
    x = np.zeros((1, 3, 5), "float32")
    theirs(x, x)
    assert MultiHeadAttention.from_keras(theirs).dtype_policy == theirs.dtype_policy


def test_equals_keras_multi_head_attention_that_is_causal_and_its_gradients():
    x = tf.constant(np.random.default_rng(1).normal(size=(2, 9, 16)).astype("float32"))
    theirs = keras.layers.MultiHeadAttention(4, 8)
    theirs(x, x)
    results = []
    for layer in (MultiHeadAttention.from_keras(theirs), theirs):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, x, use_causal_mask=True)
            loss = tf.reduce_sum(y**2)
        end = "_dense" if layer is theirs else ""
        parts = [getattr(layer, name + end) for name in ("query", "key", "value")]
        results.append([y, *tape.gradient(loss, [x, *(part.kernel.value for part in parts)])])
    for found, expected in zip(*results, strict=True):
        expected = np.reshape(expected, found.shape)
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 4, 6), {"use_gate": True}, "use_gate of the attention=True must be one of"),
        ((1, 4, 6), {"sliding_window": 2}, "sliding_window of the attention=2 must be one of"),
        ((1, 4, 5, 6), {}, r"attention_axes of the attention=\(1, 2\) must be"),
        ((1, 4, 6), {"output_shape": (4, 5)}, "too many values to unpack"),
    ],
)
def test_refuses_keras_layers_that_compute_something_else(shape, options, message):
    attention, x = keras.layers.MultiHeadAttention(2, 3, **options), np.zeros(shape, "float32")
    attention(x, x)
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention.from_keras(attention)


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("value_heads", [1, 2])
def test_queries_that_see_nothing_attend_to_zeros(rounds, rate, value_heads):
    """Whether weights are rounded, dropped, both, or the values are of all heads."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 2, 3, 4)).astype("float32")
    value = 1 + rng.random((2, value_heads, 4, 5)).astype("float32")
    mask = np.ones((2, 3, 4), bool)
    mask[1, 2] = False
    dropout = keras.layers.Dropout(rate, seed=1) if rate else None
    attend = attention if rounds else fused_attention
    found = np.array(attend(scores, value, mask, dropout))
    np.testing.assert_array_equal(found[1, :, 2], np.zeros((2, 5)))
    found[1, :, 2] = 1
    assert (found.max(axis=-1) > 0).mean() > 0.8
    if not rate:
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        np.testing.assert_allclose(found[0], (weights @ value)[0], atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_stays_close_and_finite(policy):
    x = np.random.default_rng(0).normal(size=(2, 6, 16)).astype("float32")
    mask = np.array([[1, 1, 1, 0, 0, 0], [0] * 6], bool)[:, None]
    exact = MultiHeadAttention(4, 4)
    exact(x)
    mixed = MultiHeadAttention(4, 4, dtype=policy)
    mixed.build(x.shape)
    mixed.set_weights(exact.get_weights())
    y = mixed(x, attention_mask=mask)
    assert y.dtype == policy.removeprefix("mixed_")
    tolerance = 0.005 if policy == "mixed_float16" else 0.04
    np.testing.assert_allclose(
        tf.cast(y, "float32"), exact(x, attention_mask=mask), atol=tolerance
    )


def test_symbolic_shapes_are_the_real_ones():
    layer = MultiHeadAttention(3, 4, output_dim=5)
    query, value = keras.Input((7, 12)), keras.Input((9, 10))
    output, scores = layer(query, value, return_attention_scores=True)
    assert output.shape == (None, 7, 5)
    assert scores.shape == (None, 3, 7, 9)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((2, 5)), r"\(6, 4\)"),
        (np.ones((2, 3, 4)), r"\(2, 6, 4\)"),
        (np.ones((3, 6, 4)), r"\(2, 6, 4\)"),
        (np.ones((2, 1, 4, 4)), r"\(2, 2, 6, 4\)"),
    ],
)
def test_refuses_masks_that_do_not_fit(mask, message):
    layer = MultiHeadAttention(2, 4)
    with pytest.raises(ValueError, match=message):
        layer(np.zeros((2, 6, 8)), np.zeros((2, 4, 8)), attention_mask=mask)


def test_with_a_cache_tokens_are_projected_once():
    rng = np.random.default_rng(0)
    layer = MultiHeadAttention(3, 4, value_dim=5)
    x = rng.normal(size=(2, 7, 12)).astype("float32")
    whole, _, key, value = layer(x, use_causal_mask=True, return_projections=True)
    cache = tf.zeros((2, 3, 9, 4)), tf.zeros((2, 3, 9, 5))
    for start, stop in ((0, 4), (4, 5), (5, 7)):
        seen = np.arange(9) <= np.arange(start, stop)[:, None]
        output, _, *cache = layer(
            x[:, start:stop],
            attention_mask=np.tile(seen, (2, 1, 1)),
            cache=(*cache, tf.constant(start)),
            return_projections=True,
        )
        np.testing.assert_allclose(output, whole[:, start:stop], atol=1e-6)
    np.testing.assert_allclose(cache[0][:, :, :7], key, atol=1e-6)
    np.testing.assert_allclose(cache[1][:, :, :7], value, atol=1e-6)
    spec = layer.compute_output_spec(
        x[:, :2], cache=(*cache, tf.constant(0)), return_projections=True
    )
    assert [s.shape for s in spec] == [(2, 2, 12), (2, 3, 2, 4), (2, 3, 9, 4), (2, 3, 9, 5)]


def test_a_cache_of_another_batch_is_refused():
    layer = MultiHeadAttention(2, 4)
    layer.build((2, 1, 8))
    cache = (*[tf.zeros((3, 2, 5, 4))] * 2, tf.constant(0))
    with pytest.raises(ValueError, match="cache is of a batch of 3, but query of one of 2"):
        layer(np.zeros((2, 1, 8), "float32"), attention_mask=np.ones((2, 1, 5)), cache=cache)
