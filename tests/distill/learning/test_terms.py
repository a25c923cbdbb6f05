"""Terms are means of distances over texts, real tokens or pairs of real tokens."""

import keras
import numpy as np
import pytest

from distill.learning.methods import (
    attention_score_terms,
    hidden_state_terms,
    make_projection,
    soft_label_terms,
)
from distill.learning.terms import TermsLoss


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def soft_labels(temperature):
    return TermsLoss(soft_label_terms(temperature=temperature))


def test_soft_labels_are_the_scaled_divergence():
    rng = np.random.default_rng(0)
    teacher, student = rng.normal(size=(2, 5, 3))
    p, q = softmax(teacher / 3), softmax(student / 3)
    expected = 9 * np.mean(np.sum(p * np.log(p / q), -1))
    found = soft_labels(3.0).compute_loss({"logits": teacher}, {"logits": student})
    assert float(found) == pytest.approx(expected, rel=1e-5)
    assert float(soft_labels(3.0).compute_loss({"logits": p}, {"logits": p})) == 0


def test_soft_labels_of_tokens_leave_padding_out():
    rng = np.random.default_rng(0)
    teacher, student = rng.normal(size=(2, 2, 4, 3))
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
    p, q = softmax(teacher), softmax(student)
    divergence = np.sum(p * np.log(p / q), -1)
    arguments = {"logits": teacher}, {"logits": student}
    found = soft_labels(1.0).compute_loss(*arguments, padding_mask=mask)
    assert float(found) == pytest.approx(divergence[mask > 0].mean(), rel=1e-5)
    weights = np.array([1, 5])
    found = soft_labels(1.0).compute_loss(*arguments, padding_mask=mask, sample_weight=weights)
    expected = np.average(divergence, weights=mask * weights[:, None])
    assert float(found) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="one class"):
        soft_labels(1.0).compute_loss({"logits": teacher[..., :1]}, {"logits": student[..., :1]})


def test_losses_work_in_the_distiller_of_keras():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(6, 4)).astype("float32"), rng.integers(0, 3, 6)

    def model():
        inputs = keras.Input((4,))
        states = keras.layers.Dense(4)(inputs)[:, None]
        outputs = {"logits": keras.layers.Dense(3)(states[:, 0]), "hidden_states": [states]}
        return keras.Model(inputs, outputs)

    teacher, student = model(), model()
    losses = [soft_labels(1.0), TermsLoss(hidden_state_terms([]))]
    distiller = keras.distillation.Distiller(
        teacher, student, losses, distillation_loss_weights=[2.0, 3.0], student_loss_weight=0.0
    )
    hard = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    distiller.compile("adam", loss={"logits": hard, "hidden_states": [None]}, jit_compile=False)
    a, b = teacher(x), student(x)
    p, q = softmax(a["logits"].numpy()), softmax(b["logits"].numpy())
    soft = np.sum(p * np.log(p / q), -1).mean()
    hidden = np.mean((a["hidden_states"][0] - b["hidden_states"][0]) ** 2)
    y = {"logits": labels, "hidden_states": [np.zeros((6, 1, 4))]}
    found = distiller.compute_loss(x, y, student(x), training=True)
    assert float(found) == pytest.approx(2 * soft + 3 * hidden, rel=1e-5)


def test_soft_labels_take_strong_logits_and_refuse_no_temperature():
    loss = soft_labels(1.0).compute_loss({"logits": [[1e4, -1e4]]}, {"logits": [[-1e4, 1e4]]})
    assert np.isfinite(loss)
    with pytest.raises(ValueError, match="temperature=0"):
        soft_labels(0)


def test_hidden_states_are_compared_by_map_at_real_tokens():
    rng = np.random.default_rng(0)
    teacher = [rng.normal(size=(2, 4, 6)).astype("float32") for _ in range(5)]
    student = [rng.normal(size=(2, 4, 6)).astype("float32") for _ in range(3)]
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], "float32")
    terms = hidden_state_terms([1, 3])
    real = mask.astype(bool)
    pairs = [(0, 0), (2, 1), (4, 2)]
    expected = np.mean([np.mean((teacher[t][real] - student[s][real]) ** 2) for t, s in pairs])
    found = TermsLoss(terms).compute_loss(
        {"hidden_states": teacher}, {"hidden_states": student}, padding_mask=mask
    )
    assert float(found) == pytest.approx(expected, rel=1e-5)
    reads = [("hidden_states", 0), ("hidden_states", 2), ("hidden_states", 4)]
    assert [term.teacher for term in terms] == reads


def states_model(widths):
    """A model of plain hidden states."""
    inputs = keras.Input((None, 1))
    states = [keras.layers.Dense(width)(inputs) for width in widths]
    return keras.Model(inputs, {"hidden_states": states})


def test_hidden_states_of_a_narrower_student_are_projected():
    rng = np.random.default_rng(0)
    teacher = [rng.normal(size=(1, 3, 6)).astype("float32") for _ in range(2)]
    student = [rng.normal(size=(1, 3, 4)).astype("float32") for _ in range(2)]
    models = [states_model([6, 6]), states_model([4, 4])]
    projection = make_projection(*models)
    kernel = projection.kernel.numpy()
    assert kernel.shape == (4, 6)
    assert make_projection(*models[:1] * 2) is None
    loss = TermsLoss(hidden_state_terms([0], projection, embeddings=False))
    found = loss.compute_loss(
        {"hidden_states": teacher}, {"hidden_states": student}, padding_mask=np.ones((1, 3))
    )
    assert float(found) == pytest.approx(
        np.mean((teacher[1] - student[1] @ kernel) ** 2), rel=1e-5
    )


@pytest.mark.parametrize("student_heads", [2, 3])
def test_attention_scores_are_compared_between_real_tokens(student_heads):
    rng = np.random.default_rng(0)
    teacher = rng.normal(size=(1, 2, 3, 3)).astype("float32")
    student = rng.normal(size=(1, student_heads, 3, 3)).astype("float32")
    found = TermsLoss(attention_score_terms([1])).compute_loss(
        {"attention_scores": [None, teacher]},
        {"attention_scores": [student]},
        padding_mask=np.array([[1.0, 1.0, 0.0]]),
    )
    a, b = teacher[0, :, :2, :2], student[0, :, :2, :2]
    if student_heads == 3:
        a, b = a.mean(0), b.mean(0)
    assert float(found) == pytest.approx(np.mean((a - b) ** 2), rel=1e-5)
