"""Which epoch is saved as the best, and what a training whose numbers break leaves behind."""

import json
import math
import re
import signal
import types

import keras
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from tests.kills import progress_of
from tests.training.run.test_resumable_fit import make_batches
from tfnlp.training import RunFolder, TrainingConfig, fit, optimizer_of
from tfnlp.utils.errors import InputError

NAN = math.nan


class BreaksAtStep(keras.layers.Layer):
    """Multiplies by 1, but in one training step by NaN."""

    def __init__(self, step):
        super().__init__()
        self.step = step
        self.steps = self.add_weight(shape=(), initializer="zeros", trainable=False, name="steps")

    def call(self, x, training=False):
        if not training:
            return x
        self.steps.assign_add(1.0)
        return x * tf.where(tf.equal(self.steps, float(self.step)), NAN, 1.0)


class WithoutGradient(keras.layers.Layer):
    """Adds a 0 whose gradient is NaN."""

    def call(self, x):
        return x + tf.sqrt(0.0 * x)


def tiny_model(config, layer=None):
    """A compiled model of one table and one dense layer, which is traced in no time."""
    keras.utils.set_random_seed(0)
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key)
        for key in ("token_ids", "segment_ids", "padding_mask")
    }
    x = keras.layers.Embedding(25, 4)(inputs["token_ids"])
    x = keras.layers.Dense(2)(keras.layers.GlobalAveragePooling1D()(x))
    model = keras.Model(inputs, x if layer is None else layer(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer_of(config, model, 7), loss, jit_compile=False)
    return model


def strict_lines(path):
    """The objects of a file of JSON Lines; NaN and Infinity are no JSON."""
    assert not {"NaN", "Infinity"} & {*re.findall(r"\w+", path.read_text())}
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_best_epoch_has_the_most_or_the_least_loss_and_nan_never_counts(tmp_path):
    cases = [
        ("val_x", [0.5, 0.9, 0.4], [1, 2], 0.9),
        ("val_x", [-0.5, NAN, -0.2], [1, 3], -0.2),
        ("val_x", [0.5, 0.5, 0.4], [1], 0.5),
        ("val_x", [0.5, math.inf, 0.6], [1, 3], 0.6),
        ("val_x", [NAN, NAN, NAN], [1], None),
        ("val_x", [None, None, None], [1, 2, 3], None),
        ("val_loss", [0.5, 0.7, 0.4], [1, 3], -0.4),  # the more the better
        ("val_calibration_error", [0.5, 0.7, 0.4], [1, 3], -0.4),
    ]
    batches = make_batches(25)
    config = TrainingConfig(epochs=3, batch_size=4)
    model = tiny_model(config)
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    for number, (name, scores, saved_epochs, best) in enumerate(cases):
        run = RunFolder(tmp_path / str(number), {})
        script, saved = list(scores), []

        def evaluate(name=name, script=script):
            score = script.pop(0)
            return {} if score is None else {name: score}

        def save_best(folder, saved=saved, script=script):
            saved.append(3 - len(script))

        options = {"monitor": name, "evaluate": evaluate}
        epoch = fit(model, batches, config, run, save_best, **options)
        assert saved == saved_epochs and epoch == (best and saved[-1]), scores
        assert progress_of(run)["best"] == best, scores
        assert fit(model, batches, config, run, save_best, **options) == epoch  # nothing to train
        finite = [s if s is not None and math.isfinite(s) else None for s in scores]
        assert [m.get(name) for m in strict_lines(run.metrics_path)] == finite
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


def epochs_with_patience(folder, score, compressor=None):
    """How many of 9 epochs a training with a patience of 2 has."""
    config = TrainingConfig(epochs=9, batch_size=4, patience=2)
    run, model = RunFolder(folder / "run", {}), tiny_model(config)
    model.compressor = compressor
    options = {"monitor": "val_x", "evaluate": lambda: {"val_x": score()}}
    fit(model, make_batches(25), config, run, lambda folder: None, **options)
    return len(run.metrics())


@pytest.mark.parametrize(
    ("script", "epochs"),
    [([0.5, NAN, NAN, 0.9], 3), ([0.5, 0.4, 0.6, 0.5, 0.3, 0.9], 5)],  # a gain starts it anew
)
def test_epochs_without_a_gain_use_up_the_patience(script, epochs, tmp_path):
    scores = iter(script)
    assert epochs_with_patience(tmp_path, lambda: next(scores)) == epochs


def test_patience_begins_once_a_compression_is_complete(tmp_path):
    """Of 7 steps an epoch, 21 until it is: the third epoch is the first to count."""
    compressor = types.SimpleNamespace(complete=lambda step: int(step) >= 21)
    assert epochs_with_patience(tmp_path, lambda: 0.5, compressor) == 5


def test_a_loss_that_becomes_nan_stops_the_run_and_keeps_what_was_good(tmp_path):
    """Of 7 steps an epoch the tenth breaks; a state is saved every second."""
    config = TrainingConfig(epochs=3, batch_size=4, checkpoint_steps=2)
    saved = []
    for _ in range(2):  # the second start goes on from the last good state, to the same end
        run = RunFolder(tmp_path / "run", {})
        model = tiny_model(config, BreaksAtStep(10))
        with pytest.raises(InputError, match=r"^At step 3 of epoch 2 the loss is nan \(.*keeps"):
            fit(model, make_batches(25), config, run, lambda folder: saved.append(1))
        assert np.isnan(model.get_weights()[0]).all()
        assert saved == [1]
        assert len(strict_lines(run.metrics_path)) == 1
        state = safetensors.numpy.load_file(run.state_path)
        assert state["variable/breaks_at_step/steps"] == 9
        assert all(np.isfinite(tensor).all() for tensor in state.values())


@pytest.mark.parametrize("batch_size", [32, 4])
def test_weights_that_become_nan_are_never_saved(batch_size, tmp_path):
    """The first step's loss is finite, its gradient not: at an epoch's end, and within one."""
    config = TrainingConfig(epochs=3, batch_size=batch_size, checkpoint_steps=1)
    run = RunFolder(tmp_path / "run", {})
    model, saved = tiny_model(config, WithoutGradient()), []
    message = r"^At step 1 of epoch 1 .*embeddings is not finite \(nothing was saved"
    batches = make_batches(25)
    batches.batch_size = batch_size
    with pytest.raises(InputError, match=message):
        fit(model, batches, config, run, lambda folder: saved.append(1))
    assert saved == []
    assert not run.state_path.exists() and not run.metrics_path.exists()


def test_a_loss_scale_that_only_falls_ends_the_training(tmp_path):
    """The loss stays finite, and each step is left out for the scale: nothing is learned."""
    config = TrainingConfig(epochs=5, batch_size=4)
    keras.config.set_dtype_policy("mixed_float16")
    model = tiny_model(config, WithoutGradient())
    message = "^At step 1 of epoch 5 the gradients are not finite at a loss scale of 6e-05 "
    with pytest.raises(InputError, match=message):
        fit(model, make_batches(25), config, RunFolder(tmp_path / "run", {}), lambda folder: None)


@pytest.mark.parametrize("options", [{"monitor": None, "evaluate": dict}, {}])
def test_patience_without_a_score_is_refused(options, tmp_path):
    config = TrainingConfig(epochs=5, batch_size=4, patience=1)
    run = RunFolder(tmp_path / "run", {})
    with pytest.raises(InputError, match=r"^patience=1 has no effect here"):
        fit(tiny_model(config), make_batches(25), config, run, lambda folder: None, **options)
    assert not run.path.exists()
