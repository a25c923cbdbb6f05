"""What a `TrainingConfig` can ask for, in whole runs."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.kills import KILLS, assert_same_weights, killed_after
from tests.training.run.test_resumable_fit import make_batches
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.training import FineTuner, RunFolder, TrainingConfig, compile_model, fit, optimizer_of
from tfnlp.training.step.optimizer import averaged_weights
from tfnlp.utils.errors import InputError

# 10 steps of 4 batches an epoch end in the middle of the third.
ALL = TrainingConfig(
    max_steps=10,
    keep_every=3,
    keep_best=1,
    batch_size=4,
    learning_rate=1e-2,
    checkpoint_steps=2,
    schedule="cosine",
    optimizer="lamb",
    ema_decay=0.9,
    layer_decay=0.8,
    accumulation_steps=2,
    gradient_checkpointing=True,
)


def train(folder, text_config, config=ALL, stop_after=None):
    """The fine-tuner and its run, whose last epoch has the best of the scores that are given."""
    keras.utils.set_random_seed(0)
    train, dev = (make_batches(text_config.vocabulary_size, s, 14) for s in (True, False))
    trained = FineTuner(build_model(text_config, "classifier", 2), Classification(["a", "b"]))
    compile_model(config, trained, len(train))
    # Adam divides a gradient by its size: of one that is 0 but for rounding it makes a step.
    trained.optimizer.epsilon = 1e-3
    run = RunFolder(folder, {})

    def evaluate():
        loss = trained.evaluate(dev.dataset(), verbose=0)
        return {"val_loss": loss, "val_x": [3.0, 0.0, 4.0][len(run.metrics())]}

    def save(folder):
        save_model(trained.model, folder)

    with killed_after(stop_after):
        fit(trained, train, config, run, save, monitor="val_x", evaluate=evaluate)
    return trained, run


def test_all_at_once_is_saved_by_averages_and_a_killed_run_ends_alike(tmp_path, one_layer, caplog):
    assert (ALL.total_steps(4), ALL.total_epochs(4)) == (10, 3)
    whole, run = train(tmp_path / "whole", one_layer)
    assert int(whole.optimizer.iterations) == 10
    assert float(whole.optimizer.learning_rate) == 0  # the cosine ends there
    assert [m["epoch"] for m in run.metrics()] == [1, 2, 3]
    with pytest.raises(KILLS):
        train(tmp_path / "broken", one_layer, stop_after=7)
    resumed, broken = train(tmp_path / "broken", one_layer)
    weights = whole.model.get_weights()
    assert_same_weights(weights, resumed.model.get_weights())
    # Nothing is left to train.
    few = dataclasses.replace(ALL, keep_every=11)
    again, _ = train(tmp_path / "broken", one_layer, few)
    assert "keep_every=11 is more than the 10 steps" in caplog.text
    assert_same_weights(weights, again.model.get_weights())
    with averaged_weights(whole):
        averages = whole.model.get_weights()
        data = make_batches(one_layer.vocabulary_size, False, 14).dataset()
        loss = whole.evaluate(data, verbose=0)
    assert run.metrics()[-1]["val_loss"] == pytest.approx(loss, abs=1e-6)
    assert whole.evaluate(data, verbose=0) != pytest.approx(loss, abs=1e-4)
    assert max(np.abs(a - b).max() for a, b in zip(averages, weights, strict=True)) > 1e-3
    # The best epoch so far was kept, and ousted by the last.
    names = {path.name for path in run.checkpoints.iterdir()}
    assert names == {"step_3", "step_6", "step_9", "step_10"}
    for name in names:
        saved = [load_model(r.checkpoints / name, "classifier").weights for r in (run, broken)]
        assert_same_weights(*saved)
        assert np.array_equal(saved[0][0], averages[0]) == (name == "step_10")
    for each in (run, broken):
        assert_same_weights(load_model(each.best, "classifier").weights, averages)
    anew = RunFolder(broken.path, {}, overwrite=True)  # what is kept is a run's
    with anew.alone():
        anew.start()
    assert not (broken.checkpoints / "step_3/config.json").exists()


def test_warmup_in_steps_and_the_second_beta_reach_the_optimizer():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    config = TrainingConfig(epochs=2, learning_rate=1.0, warmup_steps=4, beta_2=0.5)
    optimizer = optimizer_of(config, model, steps_per_epoch=10)
    assert optimizer.beta_2 == 0.5
    assert float(optimizer._learning_rate(3)) == pytest.approx(0.75)
    with pytest.raises(InputError, match="warmup_steps=4 is more than the 2 steps"):
        optimizer_of(config, model, steps_per_epoch=1)


def test_a_config_gives_warm_up_decay_and_clipping():
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(inputs))
    kernel, bias = model.trainable_variables
    config = TrainingConfig(
        epochs=3, learning_rate=0.5, warmup_share=0.25, weight_decay=0.2, clip_norm=0.1
    )
    optimizer = optimizer_of(config, model, steps_per_epoch=4)
    optimizer.build([kernel, bias])
    rates, weight = [], 1.0
    for _ in range(13):
        rates.append(float(optimizer.learning_rate))
        optimizer.apply([tf.zeros_like(kernel), tf.zeros_like(bias)])
        weight *= 1 - 0.2 * rates[-1]
        np.testing.assert_allclose(kernel, [[weight]], rtol=1e-6)
    # 3 of 12 steps up, 9 down.
    expected = [0, 1 / 3, 2 / 3, *(np.arange(9, 0, -1) / 9), 0]
    assert rates == pytest.approx(0.5 * np.array(expected), abs=1e-7)
    np.testing.assert_array_equal(bias, [0])
    # A gradient of length 5, clipped, is a tenth of the first momentum.
    optimizer.apply([tf.constant([[3.0]]), tf.constant([4.0])])
    found = [float(np.squeeze(m)) for m in optimizer._momentums]
    assert found == pytest.approx([0.1 * 0.1 * 3 / 5, 0.1 * 0.1 * 4 / 5], rel=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        *({"schedule": "step"}, {"optimizer": "sgd"}, {"max_steps": 0}, {"epsilon": -1.0}),
        *({"beta_2": 1.0}, {"ema_decay": 1.0}, {"layer_decay": 0.0}, {"warmup_steps": -1}),
        *({"end_rate_share": 0.1, "schedule": "constant"}, {"warmup_steps": 10, "max_steps": 9}),
        *({"accumulation_steps": 5}, {"xla": True}),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(settings):
    name, value = next(iter(settings.items()))
    with pytest.raises(InputError, match=f"{name}={value}"):
        TrainingConfig(**settings)
