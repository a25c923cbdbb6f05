"""Encoder blocks: norms, masks, a passed or shared attention, memory."""

import keras
import numpy as np
import pytest

from tfnlp.layers import (
    EncoderBlock,
    FeedForward,
    MultiHeadAttention,
    RelativeAttention,
    SharedEncoder,
)

WIDE = MultiHeadAttention(2, 8, dropout=0.1)
OF_KERAS = keras.layers.MultiHeadAttention(2, 8)
NARROW = keras.layers.Dense(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EncoderBlock(0, 16).build((None, 4, 12)), "num_heads=0"),
        (lambda: EncoderBlock(5, 8).build((None, None, 12)), "num_heads=5"),
        (lambda: EncoderBlock(2, 8, dropout_after=("ffn",)), r"dropout_after=\('ffn',\)"),
        (lambda: EncoderBlock(2, 8, normalized="attention"), "normalized='attention' must be"),
        (lambda: EncoderBlock(4, 8, attention=WIDE), "num_heads=4"),
        (lambda: EncoderBlock(2, 8, attention_dropout=0.3, attention=WIDE), "attention_dropout"),
        (lambda: EncoderBlock(2, 8, key_dim=4, attention=WIDE), "key_dim=4"),
        (lambda: EncoderBlock(2, 12, norm="rms"), "norm='rms'"),
        (lambda: EncoderBlock(2, 12, attention="disentangled"), "attention='disentangled' must"),
        (lambda: EncoderBlock(2, 12, attention=RelativeAttention), "must be a layer, such as"),
        (lambda: MultiHeadAttention(2, 6, rotary=True), "rotary=True must be a layer"),
        (lambda: EncoderBlock(2, 12, attention=OF_KERAS), r"query and value.*from_keras"),
        (lambda: EncoderBlock(2, 12, feed_forward=NARROW).build((None, 4, 8)), "width 1"),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_options_reach_the_parts_of_a_block():
    options = {"dropout": 0.25, "dropout_after": ("attention",)}
    initial = keras.initializers.Constant(0.5)
    further = {"key_dim": 3, "trainable": False, "output_initializer": initial}
    block = EncoderBlock(2, 16, feed_forward_dropout=0.5, **further, **options)
    block.build((None, 3, 8))
    assert (block.feed_forward.dropout, block.attention.key_dim) == (0.5, 3)
    assert not any(layer.trainable for layer in block._flatten_layers())
    for each in (block, SharedEncoder(2, 2, 16, **options).blocks[0]):
        rates = each.attention_dropout_layer.rate, each.feed_forward_dropout_layer.rate
        assert rates == (0.25, 0.0)
    for part in (block.attention, block.feed_forward):
        np.testing.assert_array_equal(part.output_dense.kernel, 0.5)
    assert np.std(block.attention.query.kernel) > 0


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


def test_a_given_attention_is_loaded_under_the_name_of_its_block(tmp_path):
    inputs = keras.Input((None, 8))
    attention = RelativeAttention(2, 4, name="attention")
    model = keras.Model(inputs, EncoderBlock(2, 16, attention=attention, name="block")(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert "block/attention/content_bias" in {w.path for w in loaded.weights}
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_memory_is_normalised_as_the_inputs_are(norm_first):
    rng = np.random.default_rng(0)
    x = (3 * rng.normal(size=(2, 7, 8)) + 1).astype("float32")
    block = EncoderBlock(2, 16, norm_first=norm_first, attention=RelativeAttention(2, 4))
    whole = block(x, use_causal_mask=True)
    last = block(x[:, 3:], use_causal_mask=True, attention_arguments={"memory": x[:, :3]})
    np.testing.assert_allclose(whole[:, 3:], last, atol=1e-5)


@pytest.mark.parametrize(("part", "given"), [("attention", True), ("feed_forward", False)])
def test_blocks_with_a_part_in_common_load_and_are_not_cloned(part, given, tmp_path):
    first, second, third = (
        EncoderBlock(2, 16, attention=RelativeAttention(2, 4) if given else None) for _ in range(3)
    )
    with pytest.raises(ValueError, match=r"cannot share the .* first"):
        second.share(first, part)
    x = keras.Input((None, 8))
    y = first(x)
    for block in (second, third):
        block.share(first, part)
        y = block(y)
    model = keras.Model(x, y)
    count = model.count_params()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    loaded.save(tmp_path / "again.keras")
    inputs = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    for again in (loaded, keras.models.load_model(tmp_path / "again.keras")):
        np.testing.assert_array_equal(model(inputs), again(inputs))
        assert again.count_params() == count
        assert [w.path for w in again.weights] == [w.path for w in model.weights]
        for name in (part, f"{part}_norm"):
            assert len({id(getattr(block, name)) for block in again.layers[1:]}) == 1
    with pytest.raises(ValueError, match=r"shares its .* save the model and load it"):
        keras.models.clone_model(model)


@pytest.mark.parametrize("part", ["attention", "feed_forward"])
def test_a_part_that_two_blocks_are_given_is_loaded_as_one(part, tmp_path):
    parts = {"attention": RelativeAttention(2, 4), "feed_forward": FeedForward(16)}
    first, second = (EncoderBlock(2, 16, **{part: parts[part]}) for _ in range(2))
    x = keras.Input((None, 8))
    model = keras.Model(x, second(first(x)))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    np.testing.assert_array_equal(model(inputs), loaded(inputs))
    assert loaded.count_params() == model.count_params()


def test_given_parts_compute_and_are_loaded(tmp_path):
    """A gated feed-forward network and norms without a mean, as newer encoders have them."""
    gate = keras.Sequential([keras.layers.Dense(12, "silu"), keras.layers.Dense(8)])
    norm = keras.layers.RMSNormalization(epsilon=1e-5)
    block = EncoderBlock(2, 12, feed_forward=gate, norm=norm, norm_first=True)
    states = keras.Input((None, 8))
    model = keras.Model(states, block(states))
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")

    def normalized(x):
        return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-5)

    attended = x + np.asarray(block.attention(normalized(x)))
    expected = attended + np.asarray(gate(normalized(attended)))
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-5)
    assert block.attention_norm is not block.feed_forward_norm
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(x), model(x))
