"""The step that every training runs."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.kills import assert_same_weights
from tests.training.run.test_resumable_fit import make_batches
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.training import FineTuner, TrainingConfig, compile_model
from tfnlp.training.step.optimizer import summed_gradients

CONFIG = TrainingConfig(epochs=2, batch_size=4, learning_rate=1e-2)


def make_trainer(tiny_config, kind=FineTuner):
    keras.utils.set_random_seed(0)
    model = build_model(dataclasses.replace(tiny_config, num_layers=1), "classifier", 2)
    trainer = kind(model, Classification(["a", "b"]))
    compile_model(CONFIG, trainer, 7)
    return trainer


class KerasStep(FineTuner):
    def train_step(self, data):
        return keras.Model.train_step(self, data)


def test_the_step_is_that_of_keras(tiny_config, no_graphs):
    """With dropout, bit for bit."""
    batches, ends = make_batches(tiny_config.vocabulary_size), []
    for kind in (FineTuner, KerasStep):
        trainer = make_trainer(tiny_config, kind)
        history = trainer.fit(batches.dataset(), epochs=1, shuffle=False, verbose=0).history
        ends.append((history["loss"], trainer.get_weights()))
    assert ends[0][0] == ends[1][0]
    assert_same_weights(ends[0][1], ends[1][1])


def test_the_norm_counts_the_rows_of_a_repeated_token_together():
    table = tf.Variable(np.ones((5, 2), "float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [3, 1, 3]))
    gradients = [tape.gradient(loss, table), None]
    norm = float(tf.linalg.global_norm(summed_gradients(gradients)))
    assert norm == pytest.approx(np.sqrt(2 * 2**2 + 2 * 1**2))  # rows 3 and 1
    assert float(tf.linalg.global_norm(gradients)) != pytest.approx(norm)
