"""Models that are kept beside the best: by steps, by scores, and of killed runs."""

import dataclasses

import keras
import numpy as np
import pytest

from tests.kills import KILLS, killed_after
from tests.training.run.test_resumable_fit import CONFIG, make_batches
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.training import FineTuner, RunFolder, compile_model, fit
from tfnlp.training.run.kept_models import KeptModels

SCORES = {7: 0.5, 14: 0.9, 21: 0.9, 28: 0.7}


def test_the_best_epochs_are_kept_and_the_ousted_deleted(tmp_path):
    kept = KeptModels(tmp_path, lambda folder: folder.mkdir(), every=7, best=2)
    kept.every = None
    scores = {}
    for step, score in SCORES.items():
        scores = kept.rank(step, score, scores)
    assert scores == {"14": 0.9, "21": 0.9}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_14", "step_21"]
    assert not kept.due(14)
    kept.every = 4
    assert kept.due(28) and not kept.due(21)


def test_an_ousted_epoch_that_is_kept_for_good_stays(tmp_path):
    kept = KeptModels(tmp_path, lambda folder: folder.mkdir(), every=7, best=1)
    scores = {}
    for step, score in {7: 0.5, 10: 0.6, 14: 0.9}.items():
        scores = kept.rank(step, score, scores)
    assert scores == {"14": 0.9}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_14", "step_7"]


def train(folder, text_config, stop_after=None, keep_every=5):
    """A run of 3 epochs of 7 batches, whose epochs have given scores."""
    keras.utils.set_random_seed(0)
    batches = make_batches(text_config.vocabulary_size)
    model = build_model(text_config, "classifier", 2)
    trainer = FineTuner(model, Classification(["a", "b"]))
    config = dataclasses.replace(CONFIG, keep_every=keep_every, keep_best=1, ema_decay=0.5)
    compile_model(config, trainer, len(batches))
    run = RunFolder(folder, {})
    with killed_after(stop_after):
        fit(
            trainer,
            batches,
            config,
            run,
            lambda place: save_model(model, place),
            monitor="val_x",
            evaluate=lambda: {"val_x": [0.0, 3.0, 1.0][len(run.metrics())]},
        )
    return run


def test_kept_models_load_and_are_those_of_a_killed_run(tmp_path, one_layer, no_graphs, caplog):
    whole = train(tmp_path / "whole", one_layer)
    names = sorted(path.name for path in whole.checkpoints.iterdir())
    assert names == ["step_10", "step_14", "step_15", "step_20", "step_5"]
    with pytest.raises(KILLS):
        train(tmp_path / "broken", one_layer, stop_after=16)
    broken = train(tmp_path / "broken", one_layer)
    for name in names:
        found = [load_model(r.checkpoints / name, "classifier") for r in (whole, broken)]
        for a, b in zip(*(model.get_weights() for model in found), strict=True):
            np.testing.assert_array_equal(a, b)
    best, kept = (
        load_model(path, "classifier").get_weights()
        for path in (whole.best, whole.checkpoints / "step_14")
    )
    for a, b in zip(best, kept, strict=True):
        np.testing.assert_array_equal(a, b)
    caplog.clear()
    train(tmp_path / "whole", one_layer, keep_every=22)
    assert "keep_every=22 is more than the 21 steps of the training: no model" in caplog.text
    anew = RunFolder(tmp_path / "whole", {}, overwrite=True)  # they are files of a run
    with anew.alone():
        anew.start()
    assert not (whole.checkpoints / "step_5/config.json").exists()
