"""Embeddings that add trained differences to the tables of others."""

import keras
import numpy as np
import tensorflow as tf

from tfnlp.layers import GradientDisentangledEmbedding, TextEmbedding


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
