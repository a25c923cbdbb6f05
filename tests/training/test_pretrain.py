"""Pretraining for an objective, and what it survives."""

import keras
import numpy as np
import pytest

from tests.kills import killed_after
from tfnlp.checkpoints import load_model
from tfnlp.models import ElectraConfig
from tfnlp.objectives import Corpus
from tfnlp.objectives.replaced_tokens import ReplacedTokens
from tfnlp.training import RunFolder, TrainingConfig
from tfnlp.training.pretrain import pretrain

CONFIG = TrainingConfig(epochs=2, batch_size=4, learning_rate=1e-3, checkpoint_steps=2)
LENGTH = 12


def small(tokenizer):
    return ElectraConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        embedding_dim=16,
        intermediate_dim=32,
        max_length=LENGTH,
    )


def make_corpus(tokenizer, documents=26, seed=0):
    rng = np.random.default_rng(seed)
    return Corpus.of(
        [
            [rng.integers(5, tokenizer.vocabulary_size, rng.integers(2, 9)) for _ in range(1)]
            for _ in range(documents)
        ]
    )


def train(folder, tokenizer, objective=None, config=CONFIG, stop_after=None, dev=True, **more):
    """Trains fresh models in `folder`, or goes on; killed after so many batches if asked."""
    keras.utils.set_random_seed(0)
    objective = objective or ReplacedTokens(generator_size=0.5)
    models = objective.build(small(tokenizer))
    size = (tokenizer, config.batch_size, LENGTH)
    batches = objective.batches(make_corpus(tokenizer), *size, seed=config.seed)
    held_out = objective.batches(make_corpus(tokenizer, 10, 1), *size, shuffle=False)
    run = RunFolder(folder, {"seed": 0})
    with killed_after(stop_after):
        figures = pretrain(
            objective,
            models,
            tokenizer,
            batches,
            held_out if dev else None,
            config,
            run,
            **more,
        )
    return models, run, figures


def test_trains_logs_each_loss_and_saves_each_model(tmp_path, tokenizer):
    config = TrainingConfig(epochs=8, batch_size=4, learning_rate=3e-3)
    models, run, figures = train(tmp_path / "run", tokenizer, config=config)
    metrics = run.metrics()
    for m in metrics:
        assert m["loss"] == pytest.approx(m["generator_loss"] + 50 * m["discriminator_loss"])
        assert m["val_loss"] == pytest.approx(
            m["val_generator_loss"] + 50 * m["val_discriminator_loss"]
        )
    assert metrics[-1]["loss"] < 0.8 * metrics[0]["loss"]
    assert figures["steps"] == 8 * 7 and figures["texts"] == 26
    for name, folder in (("discriminator", run.best), ("generator", run.path / "generator")):
        loaded = load_model(folder, models[name].head)
        for a, b in zip(models[name].get_weights(), loaded.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)
