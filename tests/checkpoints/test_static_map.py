"""Folders of static vectors, from and to sentence-transformers and model2vec."""

import json

import numpy as np
import pytest
import safetensors.numpy
import tokenizers

from tfnlp.checkpoints import load_model, read_head, read_task_settings, save_model
from tfnlp.configs import StaticConfig, VectorHead
from tfnlp.models import build_model, vector_head
from tfnlp.pipelines import load_runner
from tfnlp.text import load_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = ["a fine film", "the film", "film film zzz a good fine film", "the a " * 300]


@pytest.fixture
def saved(tokenizer, tmp_path):
    """A folder of tfnlp, in which unknown and special tokens have no weight."""
    model = build_model(StaticConfig(tokenizer.vocabulary_size, 8), "embedder")
    weights = np.random.default_rng(0).uniform(0.1, 1, (tokenizer.vocabulary_size, 1))
    weights[[*tokenizer.special_token_ids, tokenizer.unknown_token_id]] = 0
    model.get_layer("token_weights").token_table.assign(weights)
    save_model(model, tmp_path / "ours", None, tokenizer, {"max_length": 9})
    return tmp_path / "ours"


def cosines(vectors, others):
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(others, axis=1)
    return (vectors * others).sum(1) / norms


def test_vectors_are_those_of_sentence_transformers_both_ways(saved, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    theirs = library.SentenceTransformer(str(saved), device="cpu")
    ours = load_runner(saved).embed(TEXTS)
    assert cosines(theirs.encode(TEXTS), ours).min() > 0.99999
    theirs.save(str(tmp_path / "theirs"))
    assert cosines(load_runner(tmp_path / "theirs").embed(TEXTS), ours).min() > 0.99999


def test_vectors_are_those_of_model2vec_both_ways(saved, tmp_path):
    library = pytest.importorskip("model2vec")
    theirs = library.StaticModel.from_pretrained(saved)
    ours = load_runner(saved).embed(TEXTS)
    assert cosines(theirs.encode(TEXTS), ours).min() > 0.99999
    theirs.save_pretrained(tmp_path / "theirs")
    assert cosines(load_runner(tmp_path / "theirs").embed(TEXTS), ours).min() > 0.99999


def test_vectors_in_8_bits_are_read(foreign):
    folder, *_ = foreign()
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    expected = load_runner(folder).embed(TEXTS)
    rounded = np.round(30 * tensors["embeddings"].astype("float32")).astype("int8")
    safetensors.numpy.save_file(tensors | {"embeddings": rounded}, folder / "model.safetensors")
    assert cosines(load_runner(folder).embed(TEXTS), expected).min() > 0.999


@pytest.fixture
def foreign(saved, tmp_path):
    """Writes a folder as model2vec does, whose tokens 0 to 9 share a vector."""

    def write(**tensors):
        tokenizer = load_tokenizer(saved)
        size = tokenizer.vocabulary_size
        rng = np.random.default_rng(1)
        table = rng.normal(size=(size - 9, 4)).astype("float16")
        mapping = np.maximum(np.arange(size) - 9, 0)
        folder = tmp_path / "foreign"
        folder.mkdir()
        tensors = {"embeddings": table, "mapping": mapping} | tensors
        safetensors.numpy.save_file(tensors, folder / "model.safetensors")
        (folder / "tokenizer.json").write_text(tokenizer.to_json())
        config = {"model_type": "model2vec", "normalize": False, "max_length": 5}
        (folder / "config.json").write_text(json.dumps(config))
        return folder, table[mapping].astype("float32"), tokenizer

    return write


def test_mapped_vectors_are_read_and_kept(foreign, tmp_path):
    folder, table, tokenizer = foreign()
    assert read_head(folder) == "embedder" and read_task_settings(folder) == {"max_length": 5}
    model, runner = load_model(folder, "embedder"), load_runner(folder)
    assert vector_head(model) == VectorHead(normalize=False)
    ids = tokenizer.encode_plain("a fine film zzz")
    rows = table[[i for i in ids if i != tokenizer.unknown_token_id]]
    expected = rows.sum(0) / np.linalg.norm(rows.sum(0))
    (vector,) = runner.embed(["a fine film zzz"])
    np.testing.assert_allclose(vector, expected, atol=1e-6)
    np.testing.assert_array_equal(runner.embed(["film " * 9]), runner.embed(["film " * 5]))
    save_model(model, tmp_path / "again", None, runner.tokenizer)
    np.testing.assert_allclose(
        load_runner(tmp_path / "again").embed(TEXTS[:2])[0], runner.embed(TEXTS[:1])[0], atol=1e-6
    )


def test_a_static_embedding_counts_unknown_tokens_and_is_cut_by_its_tokenizer(foreign):
    folder, table, tokenizer = foreign()
    theirs = {"embedding.weight": table}
    safetensors.numpy.save_file(theirs, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec"}))
    engine = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    engine.enable_truncation(2)
    engine.save(str(folder / "tokenizer.json"))
    rows = table[[tokenizer.token_id("film"), tokenizer.unknown_token_id]]
    expected = rows.sum(0) / np.linalg.norm(rows.sum(0))
    vectors = load_runner(folder).embed(["film zzz", "film zzz a the"])
    np.testing.assert_allclose(vectors, [expected, expected], atol=1e-6)


def test_a_folder_of_another_number_of_tokens_is_refused(foreign):
    folder, *_ = foreign(weights=np.ones(3, "float32"))
    with pytest.raises(InputError, match="3 weights"):
        load_runner(folder)


def test_a_folder_without_a_table_is_refused(foreign):
    folder, *_ = foreign()
    safetensors.numpy.save_file({"weights": np.ones(3)}, folder / "model.safetensors")
    with pytest.raises(InputError, match="embeddings"):
        load_runner(folder)
