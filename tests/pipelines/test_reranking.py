"""Hits of a search are ranked anew by pairs and by tokens, from folders and files."""

import numpy as np
import pytest

from distill.export import Export, export_tflite
from distill.runtime import TextEmbedder, TokenEmbedder
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model
from tfnlp.pipelines import load_runner, rerank, reranker
from tfnlp.pipelines.keras_backend import KerasBackend
from tfnlp.pipelines.pipeline import pipeline_of
from tfnlp.pipelines.reranking import max_sim
from tfnlp.utils.errors import InputError

TEXTS = ["a fine film", "the dull plot", "film", "the film is not fine , a dull plot"]


@pytest.fixture
def saved(one_layer, tokenizer, tmp_path):
    def save(head, classes=None, settings=None, labels=None):
        model = build_model(one_layer, head, classes)
        save_model(model, tmp_path / head, labels, tokenizer, settings)
        return tmp_path / head, model

    return save


def test_hits_with_scores_move_and_others_stay():
    assert rerank(np.array([0.1, 0.9, 0.1]), 5) == [1, 0, 2, 3, 4]


def test_each_token_of_a_query_finds_its_nearest_one():
    query, text = np.random.default_rng(0).normal(size=(2, 7, 4)).astype("float32")
    expected = sum(max(float(q @ t) for t in text[:3]) for q in query)
    assert max_sim(query, text[:3]) == pytest.approx(expected, rel=1e-6)
    assert max_sim(query, text[:0]) == 0
    similarity = pytest.importorskip("sentence_transformers.util.similarity")
    expected = similarity.maxsim([query[:5]], [text, text[:2]])
    scores = [max_sim(query[:5], text), max_sim(query[:5], text[:2])]
    np.testing.assert_allclose(scores, expected[0], rtol=1e-6)


def test_a_classifier_and_a_regression_score_pairs(saved):
    folder, _ = saved("classifier", 2, {"pairs": True}, ["no", "yes"])
    runner = load_runner(folder, tokens=True)
    answers = runner.classify(["film"] * 4, TEXTS)
    for label in ("yes", "no"):
        expected = [answer.probabilities[label] for answer in answers]
        scores = reranker(runner, TEXTS, label)("film", TEXTS)
        np.testing.assert_allclose(scores, expected, rtol=1e-6)
    np.testing.assert_array_equal(
        reranker(runner, TEXTS)("film", TEXTS), reranker(runner, TEXTS, "yes")("film", TEXTS)
    )
    with pytest.raises(InputError, match="positive_label=maybe"):
        reranker(runner, TEXTS, "maybe")
    runner = load_runner(saved("classifier", 1, {"pairs": True})[0])
    expected = runner.score(["film"] * 4, TEXTS)
    np.testing.assert_array_equal(reranker(runner, TEXTS)("film", TEXTS), expected)


@pytest.mark.parametrize("classes", [1, 2])
def test_a_model_of_single_texts_is_refused(classes, one_layer, tokenizer):
    model = build_model(one_layer, "classifier", classes)

    def runner(settings):
        return pipeline_of(KerasBackend(model, tokenizer, ["no", "yes"][:classes], settings))

    with pytest.raises(InputError, match="single texts"):
        reranker(runner({"max_length": 12}), TEXTS)
    assert reranker(runner({}), TEXTS)  # a folder of others does not say


def test_an_embedder_gives_a_vector_of_each_token(saved, tokenizer, tmp_path):
    settings = {"prompts": {"query": "the "}, "max_length": 12}
    folder, model = saved("embedder", settings=settings)
    runner = load_runner(folder, tokens=True)
    expected = []
    for text in TEXTS:
        inputs = tokenizer.encode([text], max_length=12).padded([0], tokenizer.pad_token_id)
        states = np.asarray(model(inputs)["sequence_output"][0])
        expected.append(states / np.linalg.norm(states, axis=1, keepdims=True))
    np.testing.assert_allclose(runner.embed(TEXTS), load_runner(folder).embed(TEXTS), atol=1e-6)
    path = tmp_path / "model.tflite"
    options = Export("float32", max_length=12, token_vectors=True, fixed_lengths=(8,))
    export_tflite(model, path, tokenizer, options=options, task_settings=settings)
    file = TokenEmbedder(path)
    for side in (runner, file):
        for vectors, states in zip(side.embed_tokens(TEXTS), expected, strict=True):
            np.testing.assert_allclose(vectors, states, atol=2e-5)
        query = runner.embed_tokens(["the film"])[0]
        scores = reranker(side, TEXTS)("film", TEXTS[1:])  # with the prompt of queries
        np.testing.assert_allclose(scores, [max_sim(query, x) for x in expected[1:]], rtol=1e-5)
    with pytest.raises(InputError, match="TokenEmbedder"):
        TextEmbedder(path)
    with pytest.raises(InputError, match="does not compare texts"):
        reranker(load_runner(folder), TEXTS)


def test_tokens_of_other_models_have_no_vectors(one_layer, tokenizer, tmp_path):
    options = Export(max_length=12, token_vectors=True)
    with pytest.raises(InputError, match="token_vectors"):
        export_tflite(
            build_model(one_layer, "classifier", 2), tmp_path / "x", tokenizer, ["a", "b"], options
        )
