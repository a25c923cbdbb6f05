"""Translators from pairs of texts to a finished run, and on after a kill."""

import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest

from tests.kills import KILLS, assert_same_weights, killed_after
from tfnlp.checkpoints import load_model
from tfnlp.models import RecurrentTranslatorConfig, TransformerConfig, build_model
from tfnlp.models.recurrent_translator import ReadsOwnTokens
from tfnlp.tasks import ParallelTexts, Translation
from tfnlp.tasks.translation_batches import ScheduledSampling, TranslationBatches
from tfnlp.text import WordPieceTokenizer
from tfnlp.training import RunFolder, Splits, TranslatorConfig, TranslatorTraining
from tfnlp.utils.errors import InputError

ENGLISH = ("one", "two", "three", "dogs", "cats", "run", "sleep", "and", "big", "small")
GERMAN = ("ein", "zwei", "drei", "Hunde", "Katzen", "laufen", "schlafen", "und", "große", "kleine")
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ENGLISH, *map(str.lower, GERMAN)]
IDS = {"vocabulary_size": len(TOKENS), "pad_token_id": 0, "start_token_id": 0, "end_token_id": 3}
HEAD = "sequence_to_sequence"
SIZES = IDS | {"num_layers": 1, "hidden_dim": 16, "dropout": 0.1}
CONFIGS = {
    "transformer": TransformerConfig(**SIZES, num_heads=2, intermediate_dim=32, max_length=12),
    "recurrent": RecurrentTranslatorConfig(**SIZES, cell="gru"),
}
RATE = {"learning_rate": 5e-3, "schedule": "constant", "warmup_steps": 2}
SETTINGS = TranslatorConfig(max_tokens=100, epochs=3, checkpoint_steps=2, **RATE)


def make_pairs(count, seed):
    """Texts of words, and word by word the translations."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, len(ENGLISH), rng.integers(2, 6)) for _ in range(count)]
    sides = [[" ".join(words[i] for i in row) for row in rows] for words in (ENGLISH, GERMAN)]
    return ParallelTexts(*sides)


def train(folder, config, settings=SETTINGS, stop_after=None, sampling=None, count=60, **kwargs):
    keras.utils.set_random_seed(0)
    run = RunFolder(folder, {})
    model = build_model(config, HEAD)

    def sample(model, batches):
        return ReadsOwnTokens(model), ScheduledSampling(batches, sampling, settings.epochs)

    data = Splits(make_pairs(count, 0), make_pairs(20, 1), max_length=10)
    parts = Translation(), model, WordPieceTokenizer(TOKENS), data, settings, run
    kwargs["sample"] = sample if sampling else None
    with killed_after(stop_after, TranslationBatches):
        figures = TranslatorTraining(*parts, **kwargs).run_all()
    return model, run, figures


def test_a_killed_run_ends_with_the_same_weights(tmp_path):
    settings = dataclasses.replace(SETTINGS, average_epochs=2)
    more = {"config": CONFIGS["recurrent"], "settings": settings, "sampling": 0.5}
    whole, run, figures = train(tmp_path / "whole", **more)
    with pytest.raises(KILLS):
        train(tmp_path / "broken", **more, stop_after=13)
    assert 1 <= len(RunFolder(tmp_path / "broken", {}).metrics()) < 3
    resumed, broken, same = train(tmp_path / "broken", **more)
    assert_same_weights(whole.get_weights(), resumed.get_weights())
    assert same == figures
    # The mean of the last two epochs, which `recent` has one folder each of.
    folders = sorted((broken.path / "recent").iterdir())
    assert [folder.name for folder in folders] == ["epoch_2", "epoch_3"]
    recent = [load_model(folder, HEAD) for folder in folders]
    averaged = load_model(run.averaged, HEAD).get_weights()
    for mean, *weights in zip(averaged, *(model.get_weights() for model in recent), strict=True):
        np.testing.assert_allclose(mean, np.mean(weights, axis=0), atol=1e-7)
    assert np.abs(averaged[0] - recent[-1].get_weights()[0]).max() > 1e-4


def test_an_average_stays_if_an_epoch_of_it_is_gone(tmp_path, no_graphs):
    settings = dataclasses.replace(SETTINGS, epochs=2, average_epochs=2)
    more = {"settings": settings, "count": 20}
    _, run, figures = train(tmp_path / "run", CONFIGS["transformer"], **more)
    assert train(tmp_path / "run", CONFIGS["transformer"], **more)[2] == figures
    shutil.rmtree(run.path / "recent" / "epoch_1")
    with pytest.raises(InputError, match=r"recent/epoch_1/config\.json is missing"):
        train(tmp_path / "run", CONFIGS["transformer"], **more)
    load_model(run.averaged, HEAD)


def test_learns_and_reports(tmp_path):
    settings = dataclasses.replace(SETTINGS, epochs=8, learning_rate=1e-2)
    seen = []

    def score(model, prefix):
        seen.append(prefix)
        return {"dev_bleu": 12.5, "dev_bleu_signature": "nrefs:1"}

    _, run, figures = train(
        tmp_path / "run", CONFIGS["recurrent"], settings, count=200, score=score
    )
    metrics = run.metrics()
    assert seen == [""]
    assert metrics[-1]["val_perplexity"] == pytest.approx(
        np.exp(-metrics[-1]["val_log_likelihood"]), rel=1e-6
    )
    assert figures["dev_perplexity"] == min(m["val_perplexity"] for m in metrics)
    assert figures["dev_perplexity"] < 0.8 * metrics[0]["val_perplexity"]
    assert figures["dev_accuracy"] > metrics[0]["val_accuracy"]
    # Smoothed labels cannot be met: the loss is above the log-likelihood.
    assert figures["dev_loss"] > -figures["dev_log_likelihood"]
    assert json.loads((run.path / "figures.json").read_text())["dev_bleu_signature"] == "nrefs:1"
    card = (run.path / "README.md").read_text()
    assert "| dev bleu | 12.5000 |" in card and "| dev bleu signature | nrefs:1 |" in card
    assert (run.path / "curves.png").stat().st_size > 1000
