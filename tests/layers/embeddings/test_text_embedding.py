"""Text embeddings against NumPy, and tables in common."""

import keras
import numpy as np
import pytest

from tests.layers.witnesses import layer_norm
from tfnlp.layers import TextEmbedding


def test_text_embedding_sums_and_normalises():
    layer = TextEmbedding(20, 8, max_length=10)
    ids = np.array([[3, 7, 7], [1, 0, 19]])
    segments = np.array([[0, 1, 1], [0, 0, 1]])
    layer(ids)
    tokens, positions, table = (
        w.numpy() for w in (layer.token_table, layer.position_table, layer.segment_table)
    )
    np.testing.assert_allclose(layer(ids), layer(ids, np.zeros_like(ids)), atol=1e-6)
    for places in (None, np.array([[4, 0, 9], [0, 0, 1]])):
        y = layer(ids, segments, positions=places)
        rows = positions[np.arange(3)[None] if places is None else places]
        np.testing.assert_allclose(
            y, layer_norm(tokens[ids] + rows + table[segments], 1e-12), atol=1e-4
        )
    with pytest.raises(ValueError, match="length 11, but there are only max_length=10"):
        layer(np.zeros((1, 11), "int32"))


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
