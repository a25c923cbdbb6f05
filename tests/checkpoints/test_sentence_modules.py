"""Folders of sentence-transformers, from them and to them."""

import json

import keras
import numpy as np
import pytest

from distill.compression import prune_vocabulary
from tfnlp.checkpoints import (
    average_folders,
    load_model,
    read_head,
    read_task_settings,
    save_model,
)
from tfnlp.checkpoints.sentence_modules import MODES
from tfnlp.configs import POOLING_MODES, Projection, VectorHead
from tfnlp.functional.poolings import POOLINGS
from tfnlp.models import build_model, vector_head
from tfnlp.pipelines import load_runner
from tfnlp.utils.errors import InputError

TEXTS = ["a fine film", "the film", "film film film a good fine film . the dull plot"]
HEADS = {
    "mean": VectorHead(),
    "all": VectorHead(
        ("first", "max", "mean", "mean_sqrt_length", "weighted_mean", "last"), normalize=False
    ),
    "ordered": VectorHead(("last", "first")),
    "dense": VectorHead(("first",), (Projection(6), Projection(4, "gelu", False))),
}


@pytest.fixture
def saved(one_layer, tokenizer, tmp_path):
    def save(vectors):
        keras.utils.set_random_seed(1)
        model = build_model(one_layer, "embedder", vectors=vectors)
        settings = {"max_length": 9, "prompts": {"query": "the "}}
        save_model(model, tmp_path / "model", None, tokenizer, settings)
        return tmp_path / "model", model

    return save


@pytest.mark.parametrize("name", HEADS)
def test_a_saved_embedder_is_read_back(name, saved):
    folder, model = saved(HEADS[name])
    again = load_model(folder, "embedder")
    assert vector_head(again) == vector_head(model)
    for a, b in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert read_head(folder) == "embedder"
    assert read_task_settings(folder) == {"max_length": 9, "prompts": {"query": "the "}}


@pytest.mark.parametrize("name", HEADS)
def test_vectors_are_those_of_sentence_transformers_both_ways(name, saved, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    folder, _ = saved(HEADS[name])
    theirs = library.SentenceTransformer(str(folder), device="cpu")
    assert (theirs.max_seq_length, theirs.prompts["query"]) == (9, "the ")
    expected = theirs.encode(TEXTS)
    vectors = load_model(folder, "embedder")(inputs_of(load_runner(folder)))["embedding"]
    np.testing.assert_allclose(vectors, expected, atol=2e-6)
    theirs.save(str(tmp_path / "theirs"))
    assert load_runner(tmp_path / "theirs").max_length == 9  # which cuts the last text
    again = load_runner(tmp_path / "theirs").embed(TEXTS)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(again, expected, atol=2e-6)


def inputs_of(runner):
    rows = runner.tokenizer.encode(TEXTS, max_length=9)
    return rows.padded(range(len(TEXTS)), runner.tokenizer.pad_token_id)


@pytest.mark.parametrize(
    ("place", "change", "word"),
    [
        ("modules.json", lambda x: [*x, {"type": "models.LayerNorm", "path": "5"}], "LayerNorm"),
        ("modules.json", lambda x: x[1:], "begin with a Transformer"),
        ("modules.json", lambda x: {"0": x}, "no list of modules"),
        ("1_Pooling/config.json", lambda x: x | {"pooling_mode": "median"}, "median"),
        ("1_Pooling/config.json", lambda x: x | {"include_prompt": False}, "include_prompt"),
        ("2_Dense/config.json", lambda x: x | {"use_residual": True}, "residual"),
        ("2_Dense/config.json", lambda x: x | {"activation_function": "my.Own"}, "Dense"),
        ("config_sentence_transformers.json", lambda x: x | {"truncate_dim": 2}, "truncate_dim"),
        ("sentence_bert_config.json", lambda x: x | {"do_lower_case": True}, "do_lower_case"),
    ],
)
def test_what_makes_other_vectors_is_named(place, change, word, saved):
    folder, _ = saved(HEADS["dense"])
    path = folder / place
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(InputError, match=word):
        load_runner(folder)


def test_copies_keep_how_a_vector_is_made(saved, tokenizer, tmp_path):
    folder, model = saved(HEADS["dense"])
    small, _ = prune_vocabulary(model, tokenizer, TEXTS)
    assert vector_head(small) == vector_head(model)
    average_folders([folder, folder], tmp_path / "mean")
    mean = load_model(tmp_path / "mean", "embedder")
    for a, b in zip(mean.weights, model.weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)
    with pytest.raises(InputError, match="other `vectors`"):
        load_model(folder, "embedder", vectors=VectorHead())
    (folder / "1_Pooling/config.json").unlink()
    with pytest.raises(InputError, match="is missing"):
        load_model(folder, "embedder")


def test_a_head_of_another_task_starts_on_an_embedder(saved, minilm):
    folder, model = saved(HEADS["dense"])
    classifier = load_model(folder, "classifier", 2)
    name = "embeddings"
    for a, b in zip(
        classifier.get_layer(name).weights, model.get_layer(name).weights, strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert read_head(minilm) == "embedder"
    assert read_task_settings(minilm) == {"max_length": 256}


@pytest.fixture
def classifier(one_layer, tokenizer, tmp_path):
    keras.utils.set_random_seed(1)
    model = build_model(one_layer, "classifier", 3, vectors=HEADS["dense"])
    model.get_layer("classifier").bias.assign([0.1, 0.2, -0.3])
    settings = {"max_length": 9}
    save_model(model, tmp_path / "model", [*"abc"], tokenizer, settings)
    return tmp_path / "model", model


def test_a_classifier_of_vectors_is_read_back(classifier):
    folder, model = classifier
    assert read_head(folder) == "classifier" and read_task_settings(folder) == {"max_length": 9}
    again = load_model(folder, "classifier")
    assert vector_head(again) == vector_head(model) == HEADS["dense"]
    assert [x.path for x in again.weights] == [x.path for x in model.weights]
    for a, b in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    embedder, runner = load_model(folder, "embedder"), load_runner(folder)
    inputs = inputs_of(runner)
    outputs = model(inputs)
    np.testing.assert_array_equal(embedder(inputs)["embedding"], outputs["embedding"])
    p = [[*answer.probabilities.values()] for answer in runner.classify(TEXTS)]
    np.testing.assert_allclose(p, keras.ops.softmax(outputs["logits"]), atol=1e-6)


def test_another_task_keeps_the_vector_and_starts_a_new_head(classifier):
    folder, model = classifier
    other = load_model(folder, "classifier", 2)
    assert other.output["logits"].shape == (None, 2)
    kernel = "projection_0"
    np.testing.assert_array_equal(other.get_layer(kernel).kernel, model.get_layer(kernel).kernel)
    pooled = load_model(folder, None)
    assert "embedding" not in pooled.output


def test_sentence_transformers_read_the_scores_of_a_classifier(classifier):
    library = pytest.importorskip("sentence_transformers")
    folder, model = classifier
    theirs = library.SentenceTransformer(str(folder), device="cpu")
    inputs = inputs_of(load_runner(folder))
    features = theirs(theirs.preprocess(TEXTS))
    np.testing.assert_allclose(features["scores"].detach(), model(inputs)["logits"], atol=2e-6)
    np.testing.assert_allclose(
        features["sentence_embedding"].detach(), model(inputs)["embedding"], atol=2e-6
    )


def test_every_pooling_has_a_name_and_a_function():
    assert {ours for ours, _ in MODES.values()} == {*POOLING_MODES} == {*POOLINGS}
