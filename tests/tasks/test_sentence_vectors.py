"""Training of sentence vectors, and the scores of a search."""

import dataclasses

import keras
import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from tfnlp.functional.vector_losses import cosent_loss
from tfnlp.functional.weighted_losses import entry_count
from tfnlp.models import build_model
from tfnlp.tasks import (
    SentenceVectors,
    TextGroups,
    VectorSettings,
    prompts_of,
    read_text_groups,
)
from tfnlp.tasks.retrieval import bm25_scores, ndcg_10, retrieval_scores
from tfnlp.text import LengthBatches
from tfnlp.training import FineTuner
from tfnlp.training.experiments.finetuning import warn_of_baseline
from tfnlp.utils.errors import InputError

GROUPS = TextGroups([("a fine film", "the good film"), ("the a", "a the"), ("film", "fine good")])


def test_a_batch_has_the_vectors_of_each_example(one_layer, tokenizer):
    task, model = SentenceVectors(), build_model(one_layer, "embedder")
    encodings, _ = task.encode(tokenizer, GROUPS, 12)
    (inputs,) = LengthBatches(encodings, 3, pad_token_id=tokenizer.pad_token_id).batch([0, 1, 2])
    vectors = task.batch_model(model)(inputs)["embedding"]
    for i, group in enumerate(GROUPS.texts):
        rows = tokenizer.encode([*group], max_length=12)
        expected = model(rows.padded([0, 1], tokenizer.pad_token_id))["embedding"]
        np.testing.assert_allclose(vectors[i], expected, atol=1e-6)
    with pytest.raises(InputError, match="matryoshka_dims=99"):
        SentenceVectors(VectorSettings(matryoshka_dims=(99,))).batch_model(model)


@pytest.mark.parametrize(
    ("prompts", "beginnings"),
    [
        ({"query": "q: ", "passage": "p: "}, ("q: ", "p: ")),
        ({"corpus": "c: ", "passage": "p: "}, ("", "p: ")),
        ({"corpus": "c: "}, ("", "c: ")),
        ({"document": "d: ", "passage": "p: "}, ("", "d: ")),
    ],
)
def test_texts_begin_as_sentence_transformers_encodes_documents(prompts, beginnings):
    assert prompts_of({"prompts": prompts})[0] == beginnings


def test_whole_vectors_learn_beside_their_first_entries():
    vectors = np.random.default_rng(0).normal(size=(3, 2, 8)).astype("float32")
    part, whole = (
        float(SentenceVectors(VectorSettings(matryoshka_dims=dims)).loss(None, {"embedding": x}))
        for dims, x in (((4,), vectors), ((), vectors))
    )
    first = SentenceVectors().loss(None, {"embedding": vectors[..., :4]})
    assert part == pytest.approx(float(first) + whole, rel=1e-6)


def test_a_prompt_begins_the_first_texts_and_another_the_others(tokenizer):
    encodings, _ = SentenceVectors(None, ("the ", "a ")).encode(tokenizer, GROUPS, 12)
    expected = tokenizer.encode(["the a fine film", "a the good film"], max_length=12)
    inputs = encodings.padded([0], tokenizer.pad_token_id)
    (ids,) = inputs["token_ids"]
    shown = expected.padded([0, 1], tokenizer.pad_token_id)["token_ids"]
    np.testing.assert_array_equal(ids, shown)


@pytest.mark.parametrize("settings", [{}, {"loss": "cosent"}, {"matryoshka_dims": (32, 4)}])
def test_training_brings_texts_together(settings, one_layer, tokenizer):
    config = dataclasses.replace(one_layer, dropout=0.0, attention_dropout=0.0)
    model = build_model(config, "embedder")
    groups = dataclasses.replace(GROUPS, scores=[1, 0, 0.5] if "loss" in settings else None)
    task = SentenceVectors(VectorSettings(**settings))
    encodings, labels = task.encode(tokenizer, groups, 12)
    batches = LengthBatches(encodings, 3, labels, pad_token_id=tokenizer.pad_token_id)
    trainer = FineTuner(model, task)
    trainer.compile(keras.optimizers.Adam(3e-3))
    inputs, labels = batches.batch([0, 1, 2])
    losses = [trainer.train_on_batch(inputs, labels) for _ in range(25)]
    assert losses[-1] < losses[0] / 2
    outputs = {"embedding": [*np.asarray(task.batch_model(model)(inputs)["embedding"])]}
    scores = task.score(groups, encodings, outputs)
    assert scores[task.monitor] == pytest.approx(1)
    if "matryoshka_dims" in settings:
        assert scores["ndcg_10_at_4"] == pytest.approx(1)


def test_scores_of_a_search():
    near = np.array([[0.9, 0.1, 0.5, 0.9], [0.2, 0.1, 0.5, 0.9], [0.3, 0.3, 0.3, 0.3]])
    scores = retrieval_scores(near, ["a", "b", "c"])
    # Ranks 1, 3 (of 3 texts), and 3, as no text of equal ones is found before the others.
    assert scores == {
        "ndcg_10": pytest.approx(np.mean([1, 1 / 2, 1 / 2])),
        "mrr_10": pytest.approx(np.mean([1, 1 / 3, 1 / 3])),
        "recall_1": pytest.approx(1 / 3),
        "recall_10": 1.0,
    }
    assert retrieval_scores([[0.5, 0.1], [0.5, 0.1]], ["a", "a"])["recall_1"] == 1.0
    assert not any(retrieval_scores(np.full((20, 20), np.nan), range(20)).values())  # diverged
    # Query i finds its text at rank i + 1.
    late = retrieval_scores(-np.tile(np.arange(12), (12, 1)), [*"abcdefghijkl"])
    assert late["recall_10"] == pytest.approx(10 / 12)
    assert late["mrr_10"] == pytest.approx(sum(1 / rank for rank in range(1, 11)) / 12)


def test_scores_do_not_depend_on_the_lengths_of_vectors(tokenizer):
    rng = np.random.default_rng(0)
    vectors, groups = rng.normal(size=(3, 2, 8)), dataclasses.replace(GROUPS, scores=[1, 0, 0.5])
    for task, examples in (
        (SentenceVectors(VectorSettings(matryoshka_dims=(4,))), GROUPS),
        (SentenceVectors(VectorSettings(loss="cosent")), groups),
    ):
        encodings, _ = task.encode(tokenizer, examples, 12)
        scores = [
            task.score(examples, encodings, {"embedding": [*(vectors * lengths)]})
            for lengths in (1, np.array([1e-3, 1, 1e3])[:, None, None])
        ]
        assert scores[0] == pytest.approx(scores[1])


def test_gains_of_hits_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for count in (3, 10, 25):
        relevances = rng.integers(0, 3, count)
        expected = ndcg_score([relevances], [-np.arange(count)], k=10)
        assert ndcg_10(relevances) == pytest.approx(expected)
    assert ndcg_10([0, 0, 1]) == pytest.approx(0.5) and ndcg_10([0, 0]) == 0


def test_a_model_below_its_baseline_is_told_so(caplog):
    warn_of_baseline({"dev_ndcg_10": 0.3, "dev_baseline_ndcg_10": 0.4}, "dev_ndcg_10", "try")
    assert "no better than the baseline's 0.4000" in caplog.text
    caplog.clear()
    warn_of_baseline({"dev_ndcg_10": 0.5, "dev_baseline_ndcg_10": 0.4}, "dev_ndcg_10", "try")
    warn_of_baseline({"dev_spearman": 0.5}, "dev_spearman", "try")
    assert not caplog.text
    student = {"teacher_dev_accuracy": 0.5, "dev_accuracy": 0.7, "dev_baseline_accuracy": 0.6}
    for name in ("teacher_dev_accuracy", "dev_accuracy"):
        warn_of_baseline(student, name, "try")
    (message,) = caplog.messages
    assert message.startswith("teacher_dev_accuracy is 0.5000, no better")


def test_bm25_finds_rare_words():
    pytest.importorskip("bm25s")
    texts = ["the red house", "the green tree", "the tree and the house", ""]
    scores = bm25_scores(["Green!", "house"], texts)
    assert scores.shape == (2, 4) and scores[0].argmax() == 1
    assert scores[1, 0] > scores[1, 2] > scores[1, 1] == 0  # a longer text counts less


@pytest.mark.parametrize(
    ("rows", "columns", "score", "word"),
    [
        ("a\tb\tnan\n", ["x", "y"], "score", "score 'nan'"),
        ("a\t \t1\n", ["x", "y"], None, "y is empty"),
        ("a\tb\t1\n", ["x"], None, "at least 2"),
        ("a\tb\t1\n", ["x", "z"], None, "z"),
    ],
)
def test_wrong_files_are_refused(rows, columns, score, word, tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("x\ty\tscore\n" + rows)
    with pytest.raises(InputError, match=word):
        read_text_groups(path, columns, score)


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "triplet"},
        {"num_texts": 3, "loss": "cosine"},
        {"loss": "cosent", "symmetric": True},
        {"loss": "cosine", "scale": 50.0},
        {"matryoshka_dims": (0,)},
    ],
)
def test_settings_that_do_not_fit_are_refused(settings):
    with pytest.raises(InputError, match=next(reversed(settings))):
        VectorSettings(**settings)


@pytest.mark.parametrize(("loss", "score"), [("cosine", 1.5), ("contrastive", -0.5)])
def test_scores_of_another_scale_are_refused(loss, score, tokenizer):
    groups = dataclasses.replace(GROUPS, scores=[0, 1, score])
    with pytest.raises(InputError, match=f"{loss} takes .* not {score}"):
        SentenceVectors(VectorSettings(loss=loss)).encode(tokenizer, groups, 12)


def test_a_loss_of_all_pairs_counts_as_one_entry():
    """By which replicas average it; a sum of all would grow with their number."""
    vectors = np.random.default_rng(0).normal(size=(4, 2, 8)).astype("float32")
    assert float(entry_count(cosent_loss(vectors, np.arange(4.0)), None)) == 1


def test_what_decides_a_run_is_told():
    task = SentenceVectors(VectorSettings(loss="cosent", scale=30.0), ("query: ", ""))
    assert task.decisive() == {"loss": "cosent", "scale": 30.0, "query_prompt": "query: "}
