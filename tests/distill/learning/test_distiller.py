"""The training loss of a distiller, by term, and what it trains."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from distill.learning.distances import squared_error
from distill.learning.distiller import Distiller
from distill.learning.methods import logits, soft_label_terms
from distill.learning.terms import Term, check_terms
from tests.distill.learning.test_teacher_outputs import make_batches
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.utils.errors import InputError

TASK = Classification(["a", "b"])


@pytest.fixture
def pair(tiny_config):
    outputs = {"hidden_states": True, "attention_scores": True}
    teacher = build_model(tiny_config, "classifier", 2, **outputs)
    small = dataclasses.replace(
        tiny_config, num_layers=2, hidden_dim=16, dropout=0.0, attention_dropout=0.0
    )
    return teacher, build_model(small, "classifier", 2, **outputs)


def terms(teacher, student):
    weights = {"hidden_state_weight": 0.3, "attention_weight": 0.1}
    return logits(teacher, student, TASK, [0, 2], 2.0, 0.5, **weights)


def test_trains_student_and_projection_but_not_the_teacher(pair, no_graphs):
    teacher, student = pair
    distiller = Distiller(student, TASK, terms(teacher, student), teacher)
    trainable = {v.path for v in distiller.trainable_variables}
    assert "hidden_state_projection/kernel" in trainable
    assert len(trainable) == len(student.trainable_variables) + 1
    before = [w.numpy() for w in teacher.weights]
    distiller.compile("adam", jit_compile=False)
    batches = make_batches(shuffle=True)
    history = distiller.fit(batches.dataset(), epochs=4, verbose=0, shuffle=False).history
    assert history["hidden_state_loss"][-1] < history["hidden_state_loss"][0]
    assert history["loss"][-1] < history["loss"][0]
    for a, b in zip(before, teacher.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_losses_that_are_shown_are_means_of_examples(pair):
    teacher, student = pair
    batches = make_batches()
    learned = terms(teacher, student)
    distiller, soft = Distiller(student, TASK, learned, teacher), learned[0]
    parts = []
    for rows in (np.arange(6), np.array([6])):
        x, labels = batches.batch(rows)
        distiller.compute_loss(x, labels, student(x), training=True)
        parts.append(float(soft.loss(teacher(x), student(x))))
    expected = (6 * parts[0] + parts[1]) / 7
    assert abs(parts[0] - parts[1]) > 1e-2 * expected
    assert float(distiller.trackers["soft_label"].result()) == pytest.approx(expected, rel=1e-5)


def test_a_loss_without_weight_is_shown_but_learned_from_by_nothing():
    """Not even by a gradient of 0, of which weights decay, or NaN of an infinite loss."""
    x, labels = np.ones((2, 3), "float32"), np.array([0, 1])
    inputs = keras.Input((3,))
    state = keras.layers.Dense(2)(inputs)
    student = keras.Model(inputs, {"state": state, "logits": keras.layers.Dense(2)(state)})
    student.layers[-1].kernel.assign(np.full((2, 2), np.inf))
    learned = [Term("state", "state", squared_error)]
    ignored = Term("logits", "logits", squared_error, weight=0.0, name="ignored")
    teacher = keras.models.clone_model(student)
    distiller = Distiller(student, TASK, [*learned, ignored], teacher, hard_label_weight=0.0)
    with tf.GradientTape() as tape:
        loss = distiller.compute_loss(x, labels, student(x))
    gradients = tape.gradient(loss, [w.value for w in student.trainable_variables])
    assert float(loss) > 0
    assert [gradient is None for gradient in gradients] == [False, False, True, True]
    assert all(np.isfinite(gradient).all() for gradient in gradients[:2])
    assert not np.isfinite(float(distiller.hard_label_tracker.result()))
    # The task's loss alone is that of an evaluation.
    assert float(distiller.compute_loss(x, labels, student(x), training=False)) == 0


def test_models_of_one_tensor_are_distilled():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(5, 4)).astype("float32"), rng.integers(0, 3, 5)
    inputs = keras.Input((4,))
    teacher, student = (keras.Model(inputs, keras.layers.Dense(3)(inputs)) for _ in range(2))
    task = Classification(["a", "b", "c"])
    distiller = Distiller(student, task, soft_label_terms(task, 1.0, 0.5), teacher)
    distiller.compile("adam", jit_compile=False)
    log_p, log_q = (tf.nn.log_softmax(m(x)).numpy() for m in (teacher, student))
    soft = np.sum(np.exp(log_p) * (log_p - log_q), -1).mean()
    hard = -log_q[np.arange(5), labels].mean()
    found = distiller.train_on_batch(x, labels, return_dict=True)["loss"]
    assert float(found) == pytest.approx(0.5 * (hard + soft), rel=1e-5)


def test_what_would_train_at_a_loss_of_0_is_refused(tiny_config, random_inputs):
    small = dataclasses.replace(tiny_config, num_layers=1)
    with pytest.raises(InputError, match="leave nothing to learn"):
        Distiller(build_model(small, "classifier", 2), TASK, [], hard_label_weight=0.0)
    inputs = random_inputs(2, 5, tiny_config.vocabulary_size)
    one = build_model(small, "classifier", 1)
    with pytest.raises(InputError, match=r"'soft_label' cannot .* logits of shape .* one class"):
        check_terms(soft_label_terms(TASK), one, one)
    distiller = Distiller(one, TASK, [], one)
    for labels in ([0, 0], [0.5, 2.0]):
        with pytest.raises(ValueError, match=r"logits of shape \(2, 1\) have one class"):
            distiller.compute_loss(inputs, np.array(labels), distiller(inputs))
