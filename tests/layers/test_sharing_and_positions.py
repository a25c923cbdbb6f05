import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers.witnesses import sinusoid
from tfnlp.layers import (
    EncoderBlock,
    FactorizedEmbedding,
    GradientDisentangledEmbedding,
    LearnedPositionEncoding,
    RelativeAttention,
    SharedEncoder,
    SinusoidalPositionEncoding,
    TextEmbedding,
    causal_mask,
    log_buckets,
    padding_mask,
    permutation_masks,
    segment_mask,
    sinusoids,
    update_memory,
    with_memory,
)

# Parameters of one block of width 8, 2 heads and inner width 16, in its two parts with norms.
ATTENTION = 4 * (8 * 8 + 8) + 2 * 8
FEED_FORWARD = (8 * 16 + 16) + (16 * 8 + 8) + 2 * 8


@pytest.mark.parametrize(
    ("sharing", "groups", "count"),
    [
        ("all", 1, ATTENTION + FEED_FORWARD),
        ("all", 2, 2 * (ATTENTION + FEED_FORWARD)),
        ("attention", 1, ATTENTION + 4 * FEED_FORWARD),
        ("attention", 2, 2 * ATTENTION + 4 * FEED_FORWARD),
        ("feed_forward", 1, 4 * ATTENTION + FEED_FORWARD),
        ("none", 1, 4 * (ATTENTION + FEED_FORWARD)),
    ],
)
def test_sharing_counts_weights_once_and_survives_saving(sharing, groups, count, tmp_path):
    encoder = SharedEncoder(4, 2, 16, sharing=sharing, num_groups=groups)
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, encoder(inputs))
    assert encoder.count_params() == count
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    np.testing.assert_array_equal(model(x), loaded(x))
    assert loaded.count_params() == count
    # Shared before, shared after: a change of the first block's part shows in the last's.
    first, last = loaded.layers[1].blocks[0], loaded.layers[1].blocks[-1]
    assert (first.attention is last.attention) == (groups == 1 and sharing in ("all", "attention"))
    assert (first.feed_forward is last.feed_forward) == (
        groups == 1 and sharing in ("all", "feed_forward")
    )


@pytest.mark.parametrize("part", ["attention", "feed_forward"])
@pytest.mark.parametrize("given", [False, True])
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


@pytest.mark.parametrize("sharing", ["attention", "feed_forward"])
def test_blocks_with_a_part_in_common_are_quantised(sharing):
    encoder = SharedEncoder(2, 2, 16, sharing=sharing)
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    expected = encoder(x)
    keras.Sequential([keras.Input((5, 8)), encoder]).quantize("int8")
    dtypes = {w.dtype for w in encoder.weights if w.name == "kernel"}
    assert dtypes == {"int8"}
    np.testing.assert_allclose(encoder(x), expected, atol=0.1)


@pytest.mark.parametrize("first", [0, 1])
def test_embeddings_with_tables_in_common_load_and_are_not_cloned(first, tmp_path):
    wide, narrow = TextEmbedding(11, 8, 6), TextEmbedding(11, 4, 6, embedding_dim=8)
    with pytest.raises(ValueError, match=r"cannot share the .* first"):
        narrow.share(wide)
    ids = keras.Input((None,), dtype="int32")
    outputs = [wide(ids)]
    narrow.share(wide)
    outputs.append(narrow(ids))
    both = keras.Model(ids, [outputs[first], outputs[1 - first]])
    x = np.array([[1, 5, 10]])
    for model in (both, keras.Model(ids, outputs[1])):
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
        loaded.save(tmp_path / "again.keras")
        again = keras.models.load_model(tmp_path / "again.keras")
        assert again.count_params() == loaded.count_params() == model.count_params()
        assert [w.path for w in again.weights] == [w.path for w in model.weights]
        for a, b in zip(*(keras.tree.flatten(m(x)) for m in (model, again)), strict=True):
            np.testing.assert_array_equal(a, b)
        with pytest.raises(ValueError, match=r"shares the tables .* save the model and load it"):
            keras.models.clone_model(model)


def test_tables_in_common_learn_nothing_from_gradient_disentangled_embeddings(tmp_path):
    owner = TextEmbedding(11, 8, 6, embeddings_initializer="normal")
    layer = GradientDisentangledEmbedding(11, 8, 6, num_segments=2, layer_norm_epsilon=1e-6)
    ids = keras.Input((None,), dtype="int32")
    first = owner(ids)
    layer.share(owner)
    model = keras.Model(ids, [first, layer(ids)])
    own = {w.name for w in layer.trainable_weights} - {"token_table", "position_table"}
    assert own == {"token_difference", "position_difference", "segment_table", "gamma", "beta"}
    assert layer.norm is not owner.norm and layer.segment_table is not owner.segment_table
    assert not np.any(layer.token_difference) and not np.any(layer.position_difference)
    rng = np.random.default_rng(0)
    for table in (layer.token_difference, layer.position_difference):
        table.assign(rng.normal(size=table.shape))
    sums = {name: np.asarray(table) for name, table in layer.sums().items()}
    for name, table in sums.items():
        difference = getattr(layer, name.replace("table", "difference"))
        np.testing.assert_array_equal(table, getattr(owner, name).numpy() + difference.numpy())
    # It is a `TextEmbedding` of the sums, and a tied output of them.
    plain = GradientDisentangledEmbedding(11, 8, 6, num_segments=2, layer_norm_epsilon=1e-6)
    x, states = np.array([[1, 5, 10, 5]]), rng.normal(size=(2, 8)).astype("float32")
    plain(x)
    assert plain.sums() == {} and len(plain.weights) == 5
    for name, table in (sums | {"segment_table": layer.segment_table}).items():
        getattr(plain, name).assign(table)
    np.testing.assert_allclose(layer(x), plain(x), atol=1e-6)
    np.testing.assert_allclose(layer(states, reverse=True), plain(states, reverse=True), atol=1e-5)
    # Differences have the whole gradient of the sums, the owner's tables none, nor from outputs.
    pull = rng.normal(size=(1, 4, 8)).astype("float32")
    for given, reverse in ((x, False), (states, True)):
        with tf.GradientTape(persistent=True) as tape:
            found = [
                tf.reduce_sum(tf.sin(e(given, reverse=reverse) * (1 if reverse else pull)))
                for e in (layer, plain)
            ]
        assert tape.gradient(found[0], owner.token_table.value) is None
        assert tape.gradient(found[0], owner.position_table.value) is None
        a = tape.gradient(found[0], layer.token_difference.value)
        b = tape.gradient(found[1], plain.token_table.value)
        a, b = (tf.convert_to_tensor(g).numpy() for g in (a, b))
        assert np.abs(a).max() > 0
        np.testing.assert_allclose(a, b, atol=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.count_params() == model.count_params()
    for a, b in zip(again(x), model(x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_shared_encoder_is_cloned_with_its_sharing():
    x = keras.Input((None, 8))
    model = keras.Model(x, SharedEncoder(4, 2, 16, sharing="attention")(x))
    clone = keras.models.clone_model(model)
    assert clone.count_params() == model.count_params()
    blocks = clone.layers[1].blocks
    assert blocks[0].attention is blocks[3].attention
    clone.set_weights(model.get_weights())
    inputs = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    np.testing.assert_array_equal(clone(inputs), model(inputs))


def test_groups_are_consecutive_layers():
    encoder = SharedEncoder(6, 2, 16, num_groups=3)
    encoder.build((None, None, 8))
    order = [encoder.blocks.index(block) for block in encoder._in_order()]
    assert order == [0, 0, 1, 1, 2, 2]
    parts = SharedEncoder(6, 2, 16, sharing="attention", num_groups=3)
    parts.build((None, None, 8))
    leaders = [id(block.attention) for block in parts._in_order()]
    assert len(set(leaders)) == 3 and leaders == [leaders[i - i % 2] for i in range(6)]


def test_tied_output_goes_back_through_the_projection():
    layer = FactorizedEmbedding(11, 3, 6)
    ids = np.array([[1, 2]])
    layer(ids)
    states = np.random.default_rng(0).normal(size=(2, 4, 6)).astype("float32")
    table, kernel = layer.token_table.numpy(), layer.projection.kernel.numpy()
    np.testing.assert_allclose(layer(states, reverse=True), states @ kernel.T @ table.T, atol=1e-6)
    narrow = states[..., :3]
    np.testing.assert_allclose(layer(narrow, reverse=True), narrow @ table.T, atol=1e-6)


def test_tied_output_in_a_saved_model(tmp_path):
    layer = FactorizedEmbedding(11, 3, 6, use_output_bias=True)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, layer(layer(ids), reverse=True))
    assert model.output.shape == (None, None, 11)
    model.save(tmp_path / "model.keras")
    x = np.array([[1, 5, 10]])
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(x), model(x))
    assert model.count_params() == 11 * 3 + 3 * 6 + 6 + 11


def test_sinusoids_of_the_paper_and_of_transformer_xl():
    positions = np.array([0, 1, 7, 300, -4])
    found = np.asarray(sinusoids(positions, 10, interleaved=False))
    expected = np.stack([sinusoid(p, 10) for p in positions])
    np.testing.assert_allclose(found, expected, atol=3e-5)
    pairs = np.asarray(sinusoids(positions, 10))
    np.testing.assert_array_equal(pairs[:, 0::2], found[:, :5])
    np.testing.assert_array_equal(pairs[:, 1::2], found[:, 5:])


def test_encodings_are_added_and_saved(tmp_path):
    inputs = keras.Input((None, 8))
    learned = LearnedPositionEncoding(12)
    model = keras.Model(inputs, learned(SinusoidalPositionEncoding()(inputs)))
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    expected = x + np.asarray(sinusoids(np.arange(5), 8)) + learned.position_table.numpy()[:5]
    np.testing.assert_allclose(model(x), expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(x), model(x))


def test_sinusoids_are_added_to_scaled_inputs_at_any_positions(tmp_path):
    layer = SinusoidalPositionEncoding(interleaved=False, scale=3.0, max_length=600)
    x = np.random.default_rng(0).normal(size=(2, 4, 6)).astype("float32")
    places = np.array([[0, 1, 2, 3], [599, 0, 7, 8]])
    angles = places[..., None] / 10000.0 ** (np.arange(3) / 3)
    expected = 3 * x + np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    np.testing.assert_allclose(layer(x, positions=places), expected, atol=1e-6)
    np.testing.assert_allclose(layer(x)[0], expected[0], atol=1e-6)
    # Computed as they are needed they are off by float32's rounding of the angle.
    anywhere = SinusoidalPositionEncoding(interleaved=False, scale=3.0)
    np.testing.assert_allclose(anywhere(x, positions=places), expected, atol=1e-4)
    with pytest.raises(ValueError, match="only max_length=600 positions"):
        layer(np.zeros((1, 601, 6)))
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(x), layer(x))


def test_log_buckets_near_and_far():
    # DeBERTa v3: exact up to 128, the last bucket 255 at distance 511.
    distances = np.array([0, 1, -127, 128, 129, 200, 511, -511])
    buckets = log_buckets(distances, 256, 512)
    np.testing.assert_array_equal(buckets, [0, 1, -127, 128, 129, 169, 255, -255])


def test_masks_read_as_tables():
    np.testing.assert_array_equal(padding_mask(np.array([[5, 0, 7]])), [[True, False, True]])
    same = segment_mask(np.array([[0, 1]]), np.array([[0, 0, 1]]))
    np.testing.assert_array_equal(same, [[[True, True, False], [False, False, True]]])
    content, query = permutation_masks(np.array([[2, 0, 1]]))  # position 1 first, 0 last
    expected = [[True, True, True], [False, True, False], [False, True, True]]
    np.testing.assert_array_equal(content[0], expected)
    np.testing.assert_array_equal(query[0], expected & ~np.eye(3, dtype=bool))
    np.testing.assert_array_equal(
        with_memory(causal_mask(2, 2), 1)[0], [[True, True, False], [True, True, True]]
    )


def test_a_memory_keeps_the_first_states_where_the_rest_is_read_again():
    """XLNet's `reuse_len`."""
    memory, states = np.arange(2.0).reshape(1, 2, 1), np.arange(2.0, 7.0).reshape(1, 5, 1)
    found = update_memory(memory, states, reuse_length=3)
    np.testing.assert_array_equal(np.ravel(found), [0, 1, 2, 3, 4])
    found = update_memory(memory, states, 4, reuse_length=3)
    np.testing.assert_array_equal(np.ravel(found), [1, 2, 3, 4])
