"""What a `TrainingConfig` can ask for, in whole runs."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.kills import KILLS, assert_same_weights, killed_after
from tests.training.run.test_resumable_fit import make_batches
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.text import LengthBatches
from tfnlp.training import FineTuner, RunFolder, TrainingConfig, compile_model, fit, optimizer_of
from tfnlp.training.step.optimizer import averaged_weights
from tfnlp.utils.errors import InputError

# 10 steps of 4 batches an epoch end in the middle of the third.
ALL = TrainingConfig(
    max_steps=10,
    keep_every=5,
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


def train(folder, text_config, stop_after=None):
    """The fine-tuner and its run; each epoch counts as the best."""
    keras.utils.set_random_seed(0)
    train, dev = (make_batches(text_config.vocabulary_size, s, 14) for s in (True, False))
    model = build_model(text_config, "classifier", 2)
    trained = FineTuner(model, Classification(["a", "b"]))
    compile_model(ALL, trained, len(train))
    # Adam divides a gradient by its size: of one that is 0 but for rounding it makes a step.
    trained.optimizer.epsilon = 1e-3
    run = RunFolder(folder, {})
    with killed_after(stop_after):
        fit(
            trained,
            train,
            ALL,
            run,
            lambda folder: save_model(model, folder),
            evaluate=lambda: {"val_loss": trained.evaluate(dev.dataset(), verbose=0)},
        )
    return trained, run


def test_all_at_once_is_saved_by_averages_and_a_killed_run_ends_alike(tmp_path, one_layer):
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
    again, _ = train(tmp_path / "broken", one_layer)  # nothing is left to train
    assert_same_weights(weights, again.model.get_weights())
    found = [load_model(r.best, "classifier").get_weights() for r in (run, broken)]
    with averaged_weights(whole):
        averages = whole.model.get_weights()
        data = make_batches(one_layer.vocabulary_size, False, 14).dataset()
        loss = whole.evaluate(data, verbose=0)
    for a, b, c in zip(*found, averages, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    assert run.metrics()[-1]["val_loss"] == pytest.approx(loss, abs=1e-6)
    assert whole.evaluate(data, verbose=0) != pytest.approx(loss, abs=1e-4)
    assert max(np.abs(a - b).max() for a, b in zip(averages, weights, strict=True)) > 1e-3


def test_batches_of_one_length_pad_with_the_token_that_pads():
    batches = make_batches(20, False, 5)
    fixed = LengthBatches(batches.encodings, 4, batches.labels, pad_token_id=3, fixed_length=11)
    for (inputs, labels), (padded, same) in zip(batches.epoch(), fixed.epoch(), strict=True):
        length = inputs["token_ids"].shape[1]
        np.testing.assert_array_equal(labels, same)
        for name, fill in (("token_ids", 3), ("segment_ids", 0), ("padding_mask", 0)):
            assert padded[name].shape[1] == 11
            real = inputs["padding_mask"] > 0
            np.testing.assert_array_equal(padded[name][:, :length][real], inputs[name][real])
            assert (padded[name][:, length:] == fill).all()
    assert fixed.padding_share() == pytest.approx(1 - fixed.lengths.sum() / 55)
    assert fixed.fingerprint() != batches.fingerprint()


def test_warmup_in_steps_and_the_second_beta_reach_the_optimizer():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    config = TrainingConfig(epochs=2, learning_rate=1.0, warmup_steps=4, beta_2=0.5)
    optimizer = optimizer_of(config, model, steps_per_epoch=10)
    assert optimizer.beta_2 == 0.5
    assert float(optimizer._learning_rate(3)) == pytest.approx(0.75)
    with pytest.raises(InputError, match="warmup_steps=4 is more than the 2 steps"):
        optimizer_of(config, model, steps_per_epoch=1)
    for wrong in ({"beta_2": 1.0}, {"warmup_steps": -1}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}="):
            TrainingConfig(**wrong)


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
    ("arguments", "message"),
    [
        ({"schedule": "step"}, "schedule=step is unknown; use one of linear, cosine"),
        ({"optimizer": "sgd"}, "optimizer=sgd is unknown; use one of adamw, lamb, muon"),
        ({"end_rate_share": 0.1, "schedule": "constant"}, "end_rate_share=0.1 has no effect on"),
        ({"max_steps": 0}, "max_steps=0 must be at least 1"),
        (
            {"max_steps": 9, "warmup_steps": 10},
            "warmup_steps=10 is more than max_steps=9, so that the rate",
        ),
        ({"epsilon": -1.0}, "epsilon=-1.0 must be at least 0"),
        ({"ema_decay": 1.0}, "ema_decay=1.0 must be below 1"),
        ({"layer_decay": 0.0}, "layer_decay=0.0 must be above 0"),
        ({"accumulation_steps": 5}, "accumulation_steps=5 must divide batch_size=32"),
        ({"xla": True}, "xla=True compiles the steps anew for each length"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        TrainingConfig(**arguments)
