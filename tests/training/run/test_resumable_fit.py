import concurrent.futures
import dataclasses
import os
import signal

import keras
import numpy as np
import pytest

from tests.kills import KILLS, Killed, assert_same_weights, killed_after, metrics_of, progress_of
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.training import FineTuner, RunFolder, TrainingConfig, compile_model, fit
from tfnlp.training.run.inference import predict_batches

CONFIG = TrainingConfig(epochs=3, batch_size=4, learning_rate=1e-3, checkpoint_steps=2)


def make_batches(vocabulary_size, shuffle=True, count=26):
    rng = np.random.default_rng(0)
    encodings = []
    for _ in range(count):
        ids = rng.integers(5, vocabulary_size, rng.integers(2, 9)).tolist()
        encodings.append(Encoding(ids, [0] * len(ids), truncated=False))
    labels = [e.token_ids[0] % 2 for e in encodings]
    return LengthBatches(encodings, 4, labels, shuffle=shuffle, seed=0)


def train(folder, tiny_config, config=CONFIG, stop_after=None, dev=True):
    """Trains a fresh model in `folder`, or goes on; killed after so many batches if asked."""
    keras.utils.set_random_seed(0)
    batches = make_batches(tiny_config.vocabulary_size)
    model = build_model(tiny_config, "classifier", 2)
    trained = FineTuner(model, Classification(["a", "b"]))
    compile_model(config, trained, len(batches))
    run = RunFolder(folder, {"seed": 0})
    dev_batches = make_batches(tiny_config.vocabulary_size, False)

    def evaluate():
        loss = trained.evaluate(dev_batches.dataset(), verbose=0)
        return {"val_loss": loss, "val_accuracy": accuracy(model, dev_batches)}

    options = {"monitor": "val_accuracy", "evaluate": evaluate} if dev else {}
    with killed_after(stop_after):
        fit(trained, batches, config, run, lambda folder: save_model(model, folder), **options)
    return model, run


def accuracy(model, batches):
    logits = np.stack(predict_batches(model, batches)["logits"])
    return float(np.mean(logits.argmax(1) == batches.labels))


@pytest.fixture(scope="module")
def whole(one_layer, tmp_path_factory):
    """The weights and the folder of a run that nothing broke."""
    model, run = train(tmp_path_factory.mktemp("fit") / "whole", one_layer)
    return model.get_weights(), run


# 7 batches an epoch, a state every 2: killed within the first, the second and the last epoch.
def test_a_run_killed_again_and_again_ends_with_the_same_weights_and_metrics(
    whole, tmp_path, one_layer
):
    for stop_after, state in ((5, (0, 4)), (5, (1, 2)), (8, (2, 2))):
        with pytest.raises(KILLS):
            train(tmp_path / "broken", one_layer, stop_after=stop_after)
        progress = progress_of(RunFolder(tmp_path / "broken", {"seed": 0}))
        assert (progress["epoch"], progress["step"]) == state
    # As a kill between the metrics of an epoch and its state leaves it.
    RunFolder(tmp_path / "broken", {"seed": 0}).log({"epoch": 3, "loss": 0.0})
    resumed, run = train(tmp_path / "broken", one_layer)
    weights, whole_run = whole
    assert_same_weights(weights, resumed.get_weights())
    for a, b in zip(metrics_of(whole_run), metrics_of(run), strict=True):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert b[key] == pytest.approx(value, abs=1e-6)
    assert_same_weights(*(load_model(r.best, "classifier").weights for r in (whole_run, run)))


def test_an_error_on_dev_loses_no_step(whole, tmp_path, one_layer, monkeypatch):
    """The steps of the epoch are saved before; dev alone is read again."""
    plain, epochs = LengthBatches.epoch, []

    def epoch(self, *args):
        epochs.append(self.shuffle)
        if epochs.count(False) == 2:
            raise Killed
        return plain(self, *args)

    monkeypatch.setattr(LengthBatches, "epoch", epoch)
    with pytest.raises(KILLS):
        train(tmp_path / "broken", one_layer)
    assert epochs == [True, False, True, False]
    resumed, run = train(tmp_path / "broken", one_layer)
    assert epochs[4:] == [False, True, False]
    assert_same_weights(whole[0], resumed.get_weights())
    assert metrics_of(run) == metrics_of(whole[1])


def test_a_killed_run_in_half_precision_ends_with_the_same_weights(tmp_path, one_layer):
    keras.config.set_dtype_policy("mixed_float16")
    config = dataclasses.replace(CONFIG, epochs=2)
    whole, run = train(tmp_path / "whole", one_layer, config, dev=False)
    assert all(0 < m["loss"] < 2 for m in run.metrics())
    with pytest.raises(KILLS):
        train(tmp_path / "broken", one_layer, config, stop_after=10, dev=False)
    resumed, _ = train(tmp_path / "broken", one_layer, config, dev=False)
    assert_same_weights(whole.weights, resumed.weights)


def test_a_signal_saves_and_stops_and_the_run_goes_on(whole, tmp_path, one_layer, monkeypatch):
    original, count = LengthBatches.batch, []

    def batch(self, indices):
        count.append(1)
        if len(count) == 10:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, indices)

    monkeypatch.setattr(LengthBatches, "batch", batch)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "broken", one_layer)
    assert 0 < len(RunFolder(tmp_path / "broken", {"seed": 0}).metrics()) < 3
    resumed, _ = train(tmp_path / "broken", one_layer)
    assert_same_weights(whole[0], resumed.weights)


def test_trains_in_a_thread_and_without_dev_to_the_same_weights(whole, tmp_path, one_layer):
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        model, run = pool.submit(train, tmp_path / "run", one_layer, dev=False).result()
    assert_same_weights(whole[0], model.weights)
    # Without dev the last epoch is the best.
    assert_same_weights(load_model(run.best, "classifier").weights, model.weights)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
