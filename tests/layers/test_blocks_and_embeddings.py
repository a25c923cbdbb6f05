import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.functional.activations import fused_gelu, get_activation
from tfnlp.layers import (
    AdaptiveEmbedding,
    AdaptiveSoftmax,
    DecoderBlock,
    EncoderBlock,
    FactorizedEmbedding,
    FeedForward,
    MultiHeadAttention,
    RelativeAttention,
    TextEmbedding,
)


def erf(x):
    import math

    return np.vectorize(math.erf)(x)


def layer_norm(x, epsilon):
    x = x.astype("float64")
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)


def test_feed_forward_is_exact_gelu_between_two_products():
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32") * 3
    layer = FeedForward(16)
    y = layer(x)
    w1, b1, w2, b2 = [w.numpy().astype("float64") for w in layer.weights]
    h = x @ w1 + b1
    expected = (h * 0.5 * (1 + erf(h / np.sqrt(2)))) @ w2 + b2
    np.testing.assert_allclose(y, expected, atol=1e-6)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_block_orders_norms_and_residuals(norm_first):
    x = np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")
    block = EncoderBlock(3, 20, norm_first=norm_first, layer_norm_epsilon=1e-6)
    y = block(x)

    def attend(z):
        return np.asarray(block.attention(z.astype("float32")))

    def feed(z):
        return np.asarray(block.feed_forward(z.astype("float32")))

    if norm_first:
        h = x + attend(layer_norm(x, 1e-6))
        expected = h + feed(layer_norm(h, 1e-6))
    else:
        h = layer_norm(x + attend(x), 1e-6)
        expected = layer_norm(h + feed(h), 1e-6)
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_encoder_block_hides_padding_given_by_keras_mask_or_argument():
    block = EncoderBlock(2, 8)
    x = np.random.default_rng(0).normal(size=(1, 6, 4)).astype("float32")
    short = block(x[:, :4])
    mask = np.array([[1, 1, 1, 1, 0, 0]], bool)
    np.testing.assert_allclose(block(x, mask=mask)[:, :4], short, atol=1e-6)
    np.testing.assert_allclose(block(x, attention_mask=mask[:, None])[:, :4], short, atol=1e-6)


def test_encoder_block_names_heads_that_do_not_divide():
    with pytest.raises(ValueError, match="num_heads=0 does not divide the input width 12"):
        EncoderBlock(num_heads=0, intermediate_dim=16).build((None, 4, 12))
    with pytest.raises(ValueError, match="num_heads=5 does not divide the input width 12"):
        EncoderBlock(5, 8).build((None, None, 12))


def test_encoder_block_names_sub_layers_that_it_lacks():
    with pytest.raises(ValueError, match=r"dropout_after='ffn' must be one of"):
        EncoderBlock(2, 8, dropout_after=("attention", "ffn"))


def test_encoder_block_says_what_its_attention_says():
    with pytest.raises(ValueError, match=r"num_heads=4 does not fit .* num_heads=2"):
        EncoderBlock(4, 8, attention=MultiHeadAttention(2, 8))
    with pytest.raises(ValueError, match=r"attention_dropout=0.3 .* dropout=0.1"):
        EncoderBlock(2, 8, attention_dropout=0.3, attention=MultiHeadAttention(2, 8, dropout=0.1))
    block = EncoderBlock(2, 8, attention=MultiHeadAttention(2, 8, dropout=0.1))
    _, scores = block(keras.Input((5, 4)), return_attention_scores=True)
    assert scores.shape == (None, 2, 5, 5)


def test_encoder_block_asks_for_scores_only_where_they_are_read():
    x = np.random.default_rng(0).normal(size=(1, 7, 8)).astype("float32")
    whole, cut = (
        EncoderBlock(2, 8, attention=MultiHeadAttention(2, 4, block_size=size))
        for size in (None, 3)
    )
    for block in (whole, cut):
        block.build(x.shape)
    cut.set_weights(whole.get_weights())
    np.testing.assert_allclose(cut(x), whole(x), atol=1e-5)
    assert cut(keras.Input((7, 8))).shape == (None, 7, 8)
    for inputs in (x, keras.Input((7, 8))):
        with pytest.raises(ValueError, match="block_size=3 never holds the scores"):
            cut(inputs, return_attention_scores=True)


def test_encoder_block_attends_to_other_values():
    rng = np.random.default_rng(0)
    x, value = (rng.normal(size=(2, n, 8)).astype("float32") for n in (3, 6))
    block = EncoderBlock(2, 16, norm_first=True)
    found, scores = block(x, value=value, return_attention_scores=True)
    assert scores.shape == (2, 2, 3, 6)
    spec = block(keras.Input((3, 8)), value=keras.Input((6, 8)), return_attention_scores=True)
    assert [s.shape for s in spec] == [(None, 3, 8), (None, 2, 3, 6)]
    norm = block.attention_norm
    h = x + block.attention(norm(x), norm(value))
    np.testing.assert_allclose(
        found, h + block.feed_forward(block.feed_forward_norm(h)), atol=1e-5
    )
    block = EncoderBlock(2, 16)
    found = block(x, value=value)
    np.testing.assert_array_equal(block(x, attention_arguments={"value": value}), found)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_decoder_block_goes_on_from_what_it_projected(norm_first):
    rng = np.random.default_rng(0)
    x, source = (rng.normal(size=(2, n, 12)).astype("float32") for n in (4, 5))
    shown = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])[:, None, :]
    block = DecoderBlock(3, 16, norm_first=norm_first, feed_forward_dropout=0.5)
    assert block.get_config()["feed_forward_dropout"] == block.feed_forward.dropout == 0.5
    asked = {"return_attention_scores": True, "return_projections": True}
    whole, own_scores, crossing, *projections = block(x, source, encoder_mask=shown, **asked)
    assert own_scores.shape == (2, 3, 4, 4) and crossing.shape == (2, 3, 4, 5)
    _, key, value, cross_query, cross_key, cross_value = projections
    scores = np.asarray(cross_query) @ np.asarray(cross_key).swapaxes(2, 3) / 2
    np.testing.assert_allclose(crossing, scores, atol=1e-5)
    projected = block.cross_attention.project_source(source)
    np.testing.assert_array_equal(projected[0], cross_key)
    np.testing.assert_array_equal(projected[1], cross_value)
    keys, values = np.zeros((2, 3, 4, 4), "float32"), np.zeros((2, 3, 4, 4), "float32")
    for place in range(4):
        found, _, keys, values, *_ = block(
            x[:, place : place + 1],
            None,
            attention_mask=np.arange(4)[None, None] <= np.full((2, 1, 1), place),
            encoder_mask=shown,
            return_projections=True,
            cache=(keys, values, tf.constant(place)),
            encoder_cache=projected,
        )
        np.testing.assert_allclose(found[:, 0], whole[:, place], atol=1e-5)
    np.testing.assert_allclose(keys, key, atol=1e-6)
    np.testing.assert_allclose(values, value, atol=1e-6)
    with pytest.raises(ValueError, match="cache is of a batch of 2, but query of one of 1"):
        block(x[:1], None, cache=(keys, values, tf.constant(0)), encoder_cache=projected)


def test_a_given_attention_is_loaded_under_the_name_of_its_block(tmp_path):
    inputs = keras.Input((None, 8))
    attention = RelativeAttention(2, 4, name="attention")
    model = keras.Model(inputs, EncoderBlock(2, 16, attention=attention, name="block")(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert "block/attention/content_bias" in {w.path for w in loaded.weights}
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]


def test_text_embedding_sums_and_normalises():
    layer = TextEmbedding(20, 8, max_length=10)
    ids = np.array([[3, 7, 7], [1, 0, 19]])
    segments = np.array([[0, 1, 1], [0, 0, 1]])
    y = layer(ids, segments)
    tokens, positions, table = (
        w.numpy() for w in (layer.token_table, layer.position_table, layer.segment_table)
    )
    expected = layer_norm(tokens[ids] + positions[None, :3] + table[segments], 1e-12)
    np.testing.assert_allclose(y, expected, atol=1e-4)
    np.testing.assert_allclose(layer(ids), layer(ids, np.zeros_like(ids)), atol=1e-6)
    places = np.array([[4, 0, 9], [0, 0, 1]])
    y = layer(ids, segments, positions=places)
    expected = layer_norm(tokens[ids] + positions[places] + table[segments], 1e-12)
    np.testing.assert_allclose(y, expected, atol=1e-4)


def test_text_embedding_refuses_inputs_longer_than_its_positions():
    with pytest.raises(ValueError, match="length 11, but there are only max_length=10"):
        TextEmbedding(20, 8, max_length=10)(np.zeros((1, 11), "int32"))


def test_factorized_embedding_is_a_product_of_two_matrices():
    layer = FactorizedEmbedding(50, 4, 16)
    ids = np.array([[1, 49, 3]])
    y = layer(ids)
    table = layer.token_table.numpy()
    kernel, bias = layer.projection.get_weights()
    np.testing.assert_allclose(y, table[ids] @ kernel + bias, atol=1e-6)
    assert layer.count_params() == 50 * 4 + 4 * 16 + 16


@pytest.mark.parametrize(
    "layer",
    [
        FeedForward(16, activation="gelu_tanh", dropout=0.1),
        EncoderBlock(2, 16, dropout=0.1, attention_dropout=0.2, norm_first=True),
    ],
)
def test_layers_on_sequences_save_and_load(layer, tmp_path):
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    np.testing.assert_array_equal(model(x), loaded(x))


@pytest.mark.parametrize("layer", [TextEmbedding(20, 8, 10), FactorizedEmbedding(20, 4, 8)])
def test_layers_on_ids_save_and_load(layer, tmp_path):
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    ids = np.array([[1, 2, 3]])
    np.testing.assert_array_equal(model(ids), loaded(ids))


def test_fresh_kernels_differ():
    block = EncoderBlock(2, 8, kernel_initializer=keras.initializers.TruncatedNormal())
    block.build((None, None, 8))
    attention = block.attention
    assert np.abs(attention.query.kernel - attention.key.kernel).max() > 1e-3


def test_unknown_activation_is_named():
    with pytest.raises(ValueError, match="'mish2' is unknown"):
        get_activation("mish2")


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu", "silu", "tanh"])
def test_a_dense_layer_with_an_activation_of_ours_loads(name, tmp_path):
    dense = keras.layers.Dense(4, activation=get_activation(name))
    model = keras.Sequential([keras.Input((8,)), dense])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = 3 * np.random.default_rng(0).normal(size=(5, 8)).astype("float32")
    np.testing.assert_array_equal(loaded(x), model(x))


def test_gelu_is_exact_and_so_is_its_gradient():
    from scipy.special import erf

    x = np.linspace(-12, 12, 4001)
    phi = 0.5 * (1 + erf(x / np.sqrt(2)))
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    inputs = tf.constant(x, "float32")
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        found = fused_gelu(inputs)
    np.testing.assert_allclose(found, x * phi, atol=2e-6)
    np.testing.assert_allclose(tape.gradient(found, inputs), phi + x * density, atol=2e-6)


def test_fresh_weights_are_a_truncated_normal(tmp_path):
    from scipy import stats

    from tfnlp.layers import FastTruncatedNormal

    draw = FastTruncatedNormal(stddev=0.02)
    values = np.ravel(draw((400, 300)))
    assert np.abs(values).max() <= 0.04
    assert stats.kstest(values / 0.02, stats.truncnorm(-2, 2).cdf).statistic < 0.01
    assert not np.array_equal(draw.clone()((3,)), draw((3,)))
    again = keras.initializers.deserialize(keras.initializers.serialize(draw))
    assert type(again) is FastTruncatedNormal and again.stddev == 0.02


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_memory_is_normalised_as_the_inputs_are(norm_first):
    rng = np.random.default_rng(0)
    x = (3 * rng.normal(size=(2, 7, 8)) + 1).astype("float32")
    block = EncoderBlock(2, 16, norm_first=norm_first, attention=RelativeAttention(2, 4))
    whole = block(x, use_causal_mask=True)
    last = block(x[:, 3:], use_causal_mask=True, attention_arguments={"memory": x[:, :3]})
    np.testing.assert_allclose(whole[:, 3:], last, atol=1e-5)


def test_adaptive_embedding_is_scaled_rows_of_narrower_tables_projected():
    """Baevski & Auli 2018, section 3: each cluster's table and projection, times sqrt(D)."""
    layer = AdaptiveEmbedding(10, 8, (4, 7), div_value=2)
    found = np.asarray(layer(np.arange(10)[None]))[0]
    starts = [0, 4, 7]
    for i, (table, projection) in enumerate(zip(layer.tables, layer.projections, strict=True)):
        assert table.shape[1] == (8, 4, 2)[i]
        expected = 8**0.5 * table.numpy() @ projection.numpy()
        rows = found[starts[i] : starts[i] + len(expected)]
        np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_adaptive_softmax_of_labels_is_that_of_all_tokens():
    rng = np.random.default_rng(0)
    layer = AdaptiveSoftmax(10, (4, 7), div_value=2)
    states = rng.normal(size=(2, 10, 8)).astype("float32")
    layer(states)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.weights])
    log_probs = np.asarray(layer(states))
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
    labels = np.stack([np.arange(10), rng.permutation(10)])
    expected = np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(layer(states, labels=labels), expected, atol=1e-5)
