"""Terms are means of distances over texts, real tokens or pairs of real tokens."""

import keras
import numpy as np
import pytest
from keras import ops

from distill.learning.distances import cosine_distance, squared_error
from distill.learning.methods import attention_score_terms, soft_label_terms
from distill.learning.terms import Term, check_terms
from tests.distill.expected import softmax
from tfnlp.utils.errors import InputError


def divergence(a, b):
    p, q = softmax(a), softmax(b)
    return np.sum(p * np.log(p / q), -1)


def loss(terms, output, teacher, student, *batch):
    """The sum of weighted terms of one output."""
    outputs = {output: teacher}, {output: student}
    return float(sum(term.weight * term.loss(*outputs, *batch) for term in terms))


def test_soft_labels_take_strong_logits():
    teacher, student = np.random.default_rng(0).normal(size=(2, 5, 3))
    terms = soft_label_terms(temperature=3.0)
    assert loss(terms, "logits", teacher, teacher) == 0
    assert np.isfinite(loss(terms, "logits", 1e4 * teacher, -1e4 * student))


def test_pairs_of_real_tokens_have_the_weight_of_their_text():
    teacher, student = np.random.default_rng(0).normal(size=(2, 2, 1, 3, 3))
    mask, weights = np.array([[1, 1, 1], [1, 1, 0]]), np.array([1.0, 5.0])
    pairs = mask[:, :, None] * mask[:, None, :] * weights[:, None, None]
    expected = np.average((teacher - student)[:, 0] ** 2, weights=pairs)
    (term,) = attention_score_terms([0])
    outputs = ({"attention_scores": [scores]} for scores in (teacher, student))
    assert float(term.loss(*outputs, mask, weights)) == pytest.approx(expected, rel=1e-5)


def states_model(widths):
    """A model of plain hidden states."""
    inputs = keras.Input((None, 1))
    states = [keras.layers.Dense(width)(inputs) for width in widths]
    return keras.Model(inputs, {"hidden_states": states, "logits": states[0][:, 0]})


@pytest.mark.parametrize(("weight", "temperature"), [(-1, None), (1, 0), (1, -2.0)])
def test_numbers_that_turn_a_loss_around_are_refused(weight, temperature):
    with pytest.raises(ValueError, match=f"^weight={weight} of 'logits' must be at least 0"):
        Term("logits", "logits", squared_error, weight, temperature)


def broken(teacher, student, padding_mask):
    raise ValueError("no such error\nand more")


def mean_error(teacher, student, padding_mask):
    return ops.mean(student)


STATE = ("hidden_states", 0)


@pytest.mark.parametrize(
    ("tensors", "distance", "message"),
    [
        ((STATE, STATE), squared_error, "shapes"),
        (("logits", "logits"), broken, "no such error"),
        (("logits", "logits"), mean_error, "0 axes"),
        ((STATE, "logits"), cosine_distance, "shapes"),
        (("hidden_states", "logits"), np.add, "hidden_states, .* teacher"),
        ((("logits", 0), "logits"), np.add, "logits 0"),
        ((STATE, ("hidden_states", 2)), np.add, "hidden_states 2, .* student"),
    ],
)
def test_terms_that_do_not_fit_the_models_are_refused(tensors, distance, message):
    models = states_model([6, 6]), states_model([4, 4])
    with pytest.raises(InputError, match=message):
        check_terms([Term(*tensors, distance)], *models)
