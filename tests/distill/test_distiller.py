import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from distill.distiller import Distiller
from distill.losses import make_losses
from distill.student import initialize_student, student_config
from distill.teacher_outputs import compute_teacher_outputs
from tfnlp.errors import InputError
from tfnlp.models import build_model
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizer import Encoding


def make_batches(vocabulary, targets=None, shuffle=False):
    rng = np.random.default_rng(0)
    encodings = [
        Encoding(rng.integers(5, vocabulary, n).tolist(), [0] * n, cut=False)
        for n in (3, 7, 5, 2, 6, 4, 7)
    ]
    labels = rng.integers(0, 2, 7)
    return LengthBatches(encodings, 3, labels, targets, shuffle=shuffle)


@pytest.fixture
def pair(tiny_config):
    outputs = {"hidden_states": True, "attention_scores": True}
    teacher = build_model(tiny_config, "classifier", 2, **outputs)
    small = dataclasses.replace(
        tiny_config, num_layers=2, hidden_dim=16, dropout=0.0, attention_dropout=0.0
    )
    return teacher, build_model(small, "classifier", 2, **outputs)


def losses():
    return make_losses([0, 2], 32, 16, 2.0, 0.5, hidden_state_weight=0.3, attention_weight=0.1)


@pytest.mark.parametrize("on_disk", [False, True])
def test_cached_outputs_give_the_loss_of_the_live_teacher(on_disk, pair, tiny_config, tmp_path):
    teacher, student = pair
    parts = losses()
    reads = [read for _, loss in parts for read in loss.reads()]
    plain = make_batches(tiny_config.vocabulary_size)
    cached = compute_teacher_outputs(teacher, plain, reads, tmp_path / "c" if on_disk else None)
    with_cache = make_batches(tiny_config.vocabulary_size, cached)
    live, from_cache = Distiller(student, parts, teacher), Distiller(student, parts)
    for indices in plain.order():
        x, labels = plain.batch(indices)
        _, y = with_cache.batch(indices)
        expected = live.compute_loss(x, labels, student(x), training=True)
        found = from_cache.compute_loss(x, y, student(x), training=True)
        # Hidden states and scores are kept in half precision on disk.
        assert float(found) == pytest.approx(float(expected), rel=1e-3 if on_disk else 1e-5)


def test_a_cache_is_used_again_and_one_of_another_teacher_refused(pair, tiny_config, tmp_path):
    teacher, _ = pair
    batches = make_batches(tiny_config.vocabulary_size)
    first = compute_teacher_outputs(teacher, batches, [("logits", None)], tmp_path)
    changed = (tmp_path / "logits.npy").stat().st_mtime_ns
    again = compute_teacher_outputs(teacher, batches, [("logits", None)], tmp_path)
    assert (tmp_path / "logits.npy").stat().st_mtime_ns == changed
    np.testing.assert_array_equal(first.values["logits"], again.values["logits"])
    content = (tmp_path / "logits.npy").read_bytes()
    (tmp_path / "logits.npy").write_bytes(content[:-8])
    with pytest.raises(InputError, match="is no whole cache"):
        compute_teacher_outputs(teacher, batches, [("logits", None)], tmp_path)
    (tmp_path / "logits.npy").write_bytes(content)
    teacher.get_layer("classifier").bias.assign([3.0, 4.0])
    with pytest.raises(InputError, match="another teacher"):
        compute_teacher_outputs(teacher, batches, [("logits", None)], tmp_path)


def test_trains_student_and_projection_but_not_the_teacher(pair, tiny_config):
    teacher, student = pair
    distiller = Distiller(student, losses(), teacher)
    trainable = {v.path for v in distiller.trainable_variables}
    assert "hidden_state_projection/kernel" in trainable
    assert len(trainable) == len(student.trainable_variables) + 1
    before = [w.numpy() for w in teacher.weights]
    distiller.compile("adam", jit_compile=False)
    batches = make_batches(tiny_config.vocabulary_size, shuffle=True)
    history = distiller.fit(batches.dataset(), epochs=8, verbose=0, shuffle=False).history
    assert history["hidden_state_loss"][-1] < history["hidden_state_loss"][0]
    assert history["loss"][-1] < history["loss"][0]
    for a, b in zip(before, teacher.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_evaluation_and_prediction_are_the_students_own(pair, tiny_config):
    teacher, student = pair
    distiller = Distiller(student, losses(), teacher, hard_label_weight=1.0)
    distiller.compile("adam", jit_compile=False)
    batches = make_batches(tiny_config.vocabulary_size)
    found = distiller.evaluate(batches.dataset(), verbose=0, return_dict=True)
    assert set(found) == {"loss", "accuracy"}
    logits = np.concatenate([student(batches.batch(b)[0])["logits"] for b in batches.order()])
    labels = np.concatenate([batches.labels[b] for b in batches.order()])
    assert found["accuracy"] == pytest.approx(np.mean(logits.argmax(1) == labels))
    chance = tf.nn.log_softmax(logits).numpy()[np.arange(7), labels]
    assert found["loss"] == pytest.approx(-chance.mean(), rel=1e-5)
    np.testing.assert_allclose(distiller.predict(batches.dataset(), verbose=0), logits, atol=1e-5)


def test_student_starts_from_the_chosen_layers(tiny_config):
    teacher = build_model(tiny_config, "classifier", 2)
    student = build_model(student_config(tiny_config, 2), "classifier", 2)
    copied, left = initialize_student(student, teacher, [0, 2])
    assert left == 0
    assert copied == len(student.weights)
    expected = teacher.get_layer("encoder_2").get_weights()
    for a, b in zip(student.get_layer("encoder_1").get_weights(), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="has 1 entries"):
        initialize_student(student, teacher, [0])


def test_narrower_student_keeps_ratios_and_its_own_weights(tiny_config):
    narrow = student_config(tiny_config, 2, hidden_dim=16)
    assert (narrow.num_heads, narrow.intermediate_dim) == (2, 32)
    assert student_config(tiny_config, 2, hidden_dim=20).num_heads == 4
    teacher, student = (
        build_model(tiny_config, "classifier", 2),
        build_model(narrow, "classifier", 2),
    )
    before = student.get_layer("encoder_0").get_weights()
    copied, left = initialize_student(student, teacher, [0, 2])
    assert left == len(student.weights) - copied
    for a, b in zip(before, student.get_layer("encoder_0").get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
