"""Several teachers, whose probabilities or numbers are averaged; and one of another precision."""

import dataclasses

import numpy as np
import pytest

from distill.learning import Teacher, soft_label_terms
from distill.learning.distiller import Distiller
from distill.learning.ensemble import Ensemble, teacher_shares
from tests.distill.learning.test_all_tasks import TASKS, log_softmax, make_batches
from tfnlp.models import build_model

TEMPERATURE = 3.0


def mean_error(name, teachers, student, i, n, labels, weights=None):
    """The error of example `i`'s soft labels from both teachers, from NumPy: a list of entries."""
    if name == "regression":
        return [
            np.square(
                np.average([t["logits"][i, 0] for t in teachers], weights=weights)
                - student["logits"][i, 0]
            )
        ]
    if name == "answering":
        keys, rows = ("start_logits", "end_logits"), [(i, slice(0, n))]
    else:
        places = np.flatnonzero(labels[i] != -100) if name == "tagging" else [...]
        keys, rows = ("logits",), [(i, place) for place in places]
    found = []
    for key in keys:
        for row in rows:
            each = [np.exp(log_softmax(t[key][row] / TEMPERATURE)) for t in teachers]
            p = np.average(each, 0, weights)
            q = log_softmax(student[key][row] / TEMPERATURE)
            found.append(TEMPERATURE**2 * np.sum(p * (np.log(p) - q)))
    return found


@pytest.mark.parametrize("name", ["classification", "regression", "tagging", "answering"])
def test_soft_labels_are_the_mean_of_the_teachers(name, small_config, tmp_path):
    task = TASKS[name]
    first, second, student = (
        build_model(small_config, task.kind.head, task.num_classes) for _ in range(3)
    )
    teacher, batches = Teacher([first, second], None, task), make_batches(name, 28)
    terms = soft_label_terms(task, TEMPERATURE)
    x, labels = batches.batch(np.arange(5))
    numbers = [{k: v.numpy() for k, v in m(x).items()} for m in (first, second, student)]
    errors = [
        error
        for i in range(5)
        for error in mean_error(name, numbers[:2], numbers[2], i, batches.lengths[i], labels)
    ]
    mean = teacher.terms(terms)
    live = Distiller(student, task, mean, teacher.model, hard_label_weight=0.0)
    found = float(live.compute_loss(x, labels, live(x)))
    assert found == pytest.approx(np.mean(errors), rel=1e-4) and found > 1e-3
    # The second counts three times as much as the first, in the loss and in what they answer.
    weighing = dataclasses.replace(teacher, weights=(1, 3))
    weighted = Distiller(student, task, weighing.terms(terms), weighing.model, 0.0)
    errors = [
        error
        for i in range(5)
        for error in mean_error(
            *(name, numbers[:2], numbers[2], i, batches.lengths[i], labels), weights=[1, 3]
        )
    ]
    by_weight = float(weighted.compute_loss(x, labels, weighted(x)))
    assert by_weight == pytest.approx(np.mean(errors), rel=1e-4)
    assert abs(by_weight - found) > 1e-4 * found
    if name == "classification":
        pooled = Ensemble([first, second], task, (0.25, 0.75), pooled=True)(x)["logits"]
        parts = [np.exp(log_softmax(number["logits"])) for number in numbers[:2]]
        np.testing.assert_allclose(np.exp(pooled), np.average(parts, 0, [1, 3]), rtol=1e-4)
    if name == "answering":  # together they answer by probabilities, of real positions alone
        pooled = Ensemble([first, second], task, (0.5, 0.5), pooled=True)(x)
        for row, n in enumerate(batches.lengths):
            for key, value in pooled.items():
                parts = [np.exp(log_softmax(number[key][row, :n])) for number in numbers[:2]]
                np.testing.assert_allclose(np.exp(value[row, :n]), np.mean(parts, 0), rtol=1e-4)

    folder = tmp_path if name == "classification" else None
    teacher = dataclasses.replace(teacher, cache_dir=folder)
    batches.targets = teacher.outputs(batches, terms)
    cached = Distiller(student, task, mean, hard_label_weight=0.0)
    x, y = next(iter(batches.dataset()))
    assert float(cached.compute_loss(x, y, cached(x))) == pytest.approx(found, rel=1e-4)
    if folder is None:
        return
    # Each teacher has a cache of its own, which serves it in other company too.
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert len(before) == 2
    swapped = dataclasses.replace(teacher, models=[second, first])
    again = swapped.outputs(batches, terms).batch(np.arange(5), 7)
    given = batches.targets.batch(np.arange(5), 7)
    np.testing.assert_array_equal(again["logits"], given["logits"][:, ::-1])
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_teacher_may_have_no_weight():
    assert teacher_shares([0, 2], 2) == (0.0, 1.0)
