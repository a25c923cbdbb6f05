"""Static vectors of a teacher, by hand and as a file."""

import numpy as np
import pytest

from distill.export import Export, export_tflite
from distill.learning import StaticSettings, make_static_embedder
from distill.learning.static_vectors import token_vectors, token_weights
from distill.runtime import TextEmbedder
from tfnlp.models import build_model
from tfnlp.pipelines.keras_backend import KerasBackend
from tfnlp.pipelines.pipeline import Embedder
from tfnlp.utils.errors import InputError

TEXTS = ["a fine film", "", "zzz", "the a " * 700]


@pytest.fixture
def teacher(one_layer):
    return build_model(one_layer)


def test_a_token_has_the_mean_of_its_states_between_the_special_ones(teacher, tokenizer):
    vectors = token_vectors(teacher, tokenizer)
    for token in ("film", "##ing", "[SEP]"):
        i = tokenizer.token_id(token)
        if i is not None:
            ids = np.array([[tokenizer.token_id("[CLS]"), i, tokenizer.token_id("[SEP]")]])
            states = teacher({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids**0})
            expected = np.asarray(states["sequence_output"][0]).mean(0)
            np.testing.assert_allclose(vectors[i], expected, atol=1e-5)


def test_weights_by_rank_and_by_count(tokenizer):
    size, film, fine = tokenizer.vocabulary_size, *map(tokenizer.token_id, ("film", "fine"))
    inverse = 1 / np.arange(2, size + 2)
    by_rank = token_weights(tokenizer, StaticSettings(sif_coefficient=0.1))
    assert by_rank[film] == pytest.approx(0.1 / (0.1 + inverse[film] / inverse.sum()))
    by_count = token_weights(
        tokenizer, StaticSettings(weights="sif", sif_coefficient=0.1), ["film film fine zzz"]
    )
    assert by_count[[film, fine]] == pytest.approx([0.1 / (0.1 + 2 / 3), 0.1 / (0.1 + 1 / 3)])
    for weights in (by_rank, by_count):
        np.testing.assert_array_equal(weights[tokenizer.special_token_ids], 0)
        assert weights[tokenizer.unknown_token_id] == 0


def test_all_components_keep_distances_and_fewer_the_largest(teacher, tokenizer):
    vectors = token_vectors(teacher, tokenizer)
    tables = {
        dims: np.asarray(
            make_static_embedder(teacher, tokenizer, StaticSettings(dims=dims))
            .get_layer("embeddings")
            .token_table
        )
        for dims in (28, 4)
    }
    centred = vectors - vectors.mean(0)
    np.testing.assert_allclose(tables[28] @ tables[28].T, centred @ centred.T, atol=1e-3)
    values = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(tables[4], axis=0), values[:4], rtol=1e-4)


@pytest.mark.parametrize(("quantization", "tolerance"), [("float32", 1e-5), ("int8", 0.02)])
def test_the_file_has_the_models_vectors_at_any_length(
    quantization, tolerance, teacher, tokenizer, tmp_path
):
    model = make_static_embedder(teacher, tokenizer, StaticSettings(dims=16))
    path = tmp_path / "static.tflite"
    export_tflite(model, path, tokenizer, options=Export(quantization))
    settings = {"max_length": 10_000}
    expected = Embedder(KerasBackend(model, tokenizer, settings=settings)).embed(TEXTS)
    file = TextEmbedder(path)
    np.testing.assert_allclose(file.embed(TEXTS), expected, atol=tolerance)
    assert not file.embed(["", "zzz"]).any()  # no token has a weight
    names = {x["op_name"] for x in file.backend._interpreter._get_ops_details()}
    lookup = "GATHER" if quantization == "float32" else "EMBEDDING_LOOKUP"
    assert lookup in names and not any("Flex" in name for name in names)


@pytest.mark.parametrize("settings", [{"dims": 33}, {"weights": "sif"}, {"sif_coefficient": 1.0}])
def test_what_cannot_be_made_is_refused(settings, teacher, tokenizer):
    with pytest.raises(InputError, match=next(iter(settings))):
        make_static_embedder(teacher, tokenizer, StaticSettings(**settings))


def test_texts_of_unknown_tokens_give_no_weights(tokenizer):
    with pytest.raises(InputError, match="no known token"):
        token_weights(tokenizer, StaticSettings(weights="sif"), ["zzz", ""])
