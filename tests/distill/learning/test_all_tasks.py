"""Every task is distilled by its own loss and outputs, as NumPy counts them text by text."""

import dataclasses

import keras
import numpy as np
import pytest

from distill.learning.distances import cosine_distance
from distill.learning.distiller import Distiller
from distill.learning.methods import logits
from distill.learning.teacher_outputs import compute_teacher_outputs
from distill.learning.terms import Term
from tfnlp.models import build_model
from tfnlp.tasks import (
    Classification,
    MultiLabelClassification,
    MultipleChoice,
    QuestionAnswering,
    Regression,
    Tagging,
)
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding

TASKS = {
    "classification": Classification(["a", "b", "c"]),
    "labelling": MultiLabelClassification(["a", "b", "c"]),
    "regression": Regression(),
    "tagging": Tagging(["O", "B-x", "I-x"]),
    "answering": QuestionAnswering(),
    "choosing": MultipleChoice(),
}
TEMPERATURE = 3.0
WEIGHTS = {"soft_label_weight": 0.4, "hidden_state_weight": 0.3, "attention_weight": 0.1}
LENGTHS = (7, 3, 5, 2, 6)


def make_batches(name, vocabulary):
    """5 examples of 2 to 7 tokens in one batch, with a task's labels."""
    rng = np.random.default_rng(0)

    def encoding(length):
        return Encoding(rng.integers(5, vocabulary, length).tolist(), [0] * length)

    encodings = [encoding(n) for n in LENGTHS]
    labels = rng.integers(0, 3, 5)
    if name == "choosing":
        encodings = [
            [e, encoding(4), encoding(9 - n)] for n, e in zip(LENGTHS, encodings, strict=True)
        ]
    elif name == "labelling":
        labels = rng.integers(0, 2, (5, 3))
    elif name == "regression":
        labels = rng.normal(size=5).tolist()
    elif name == "answering":
        labels = rng.integers(0, 2, (5, 2))
    elif name == "tagging":
        labels = [[-100, *rng.integers(0, 3, n - 2).tolist(), -100] for n in LENGTHS]
        labels[0][2] = -100  # a word's second token
    return LengthBatches(encodings, 5, labels)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def divergence(teacher, student):
    p, q = log_softmax(teacher / TEMPERATURE), log_softmax(student / TEMPERATURE)
    return TEMPERATURE**2 * np.sum(np.exp(p) * (p - q), -1)


def mean(entries):
    """Of (value, weight) pairs."""
    values, weights = zip(*entries, strict=True)
    return np.average(values, weights=weights)


def hard_and_soft(name, labels, teacher, student, lengths, weights):
    """The losses of the labels and of the teacher's answers, from loops over examples."""
    hard, soft = [], []
    for i, weight in enumerate(weights):
        if name == "answering":
            for column, key in enumerate(("start_logits", "end_logits")):
                a, b = teacher[key][i], student[key][i]
                hard.append((-log_softmax(b)[labels[i, column]], weight))
                soft.append((divergence(a[: lengths[i]], b[: lengths[i]]), weight))
            continue
        a, b = teacher["logits"][i], student["logits"][i]
        if name == "labelling":
            p, q = (1 / (1 + np.exp(-x / TEMPERATURE)) for x in (a, b))
            each = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
            soft.append((TEMPERATURE**2 * each.mean(), weight))
            q = 1 / (1 + np.exp(-b))
            hard.append((-np.log(np.where(labels[i], q, 1 - q)).mean(), weight))
        elif name == "regression":
            hard.append(((b[0] - labels[i]) ** 2, weight))
            soft.append(((b[0] - a[0]) ** 2, weight))
        elif name == "tagging":
            for j in np.flatnonzero(labels[i] != -100):
                hard.append((-log_softmax(b[j])[labels[i, j]], weight))
                soft.append((divergence(a[j], b[j]), weight))
        else:
            hard.append((-log_softmax(b)[labels[i]], weight))
            soft.append((divergence(a, b), weight))
    return mean(hard), mean(soft)


def states_and_scores(teacher, student, kernel, masks, weights):
    """The losses of hidden states and attention scores of texts (of which examples may have 3)."""
    hidden = {pair: [] for pair in ((0, 0), (2, 1))}
    scores = []
    for i, (mask, weight) in enumerate(zip(masks, weights, strict=True)):
        n = mask.sum()
        for t, s in hidden:
            a = teacher["hidden_states"][t][i, :n]
            b = student["hidden_states"][s][i, :n] @ kernel
            hidden[t, s] += [(e, weight) for e in np.mean((a - b) ** 2, -1)]
        # 4 heads and 2: averaged before they are compared.
        a = teacher["attention_scores"][1][i, :, :n, :n].mean(0)
        b = student["attention_scores"][0][i, :, :n, :n].mean(0)
        scores += [(e, weight) for e in np.ravel((a - b) ** 2)]
    return np.mean([mean(entries) for entries in hidden.values()]), mean(scores)


@pytest.mark.parametrize("name", TASKS)
def test_losses_are_those_of_loops_and_cached_outputs_give_them_too(name, tiny_config, tmp_path):
    task = TASKS[name]
    config = dataclasses.replace(
        tiny_config, num_layers=2, dropout=0.0, attention_dropout=0.0, hidden_dim=32
    )
    small = dataclasses.replace(config, num_layers=1, num_heads=2, hidden_dim=16)
    teacher, student = (
        build_model(c, task.kind.head, task.num_classes, hidden_states=True, attention_scores=True)
        for c in (config, small)
    )
    terms = logits(teacher, student, task, [1], TEMPERATURE, **WEIGHTS)
    batches = make_batches(name, config.vocabulary_size)
    indices = batches.batch_indices()[0]
    x, labels = batches.batch(indices)
    weights = np.array([1, 2, 0, 0.5, 1], "float32")

    of_teacher, of_student = (
        keras.tree.map_structure(np.asarray, model(x)) for model in (teacher, student)
    )
    masks = x["padding_mask"].reshape(-1, x["padding_mask"].shape[-1])
    texts = np.repeat(weights, len(masks) // 5)
    lengths = batches.lengths[indices]
    kernel = terms[-2].projection.kernel.numpy()
    parts = [
        *hard_and_soft(name, labels, of_teacher, of_student, lengths, weights),
        *states_and_scores(of_teacher, of_student, kernel, masks, texts),
    ]
    expected = np.dot([0.7, *WEIGHTS.values()], parts)

    live = Distiller(student, task, terms, teacher, hard_label_weight=0.7)
    found = live.compute_loss(x, labels, live(x), weights)
    assert float(found) == pytest.approx(expected, rel=1e-4)
    shown = live.get_metrics_result()
    names = ("hard_label", "soft_label", "hidden_state", "attention_score")
    assert [float(shown[f"{n}_loss"]) for n in names] == pytest.approx(parts, rel=1e-4)
    assert min(parts) > 1e-3

    # Hidden states and scores are kept in half precision on disk.
    folder, within = (None, 1e-4) if name == "classification" else (tmp_path, 1e-3)
    reads = [term.teacher for term in terms]
    batches.targets = compute_teacher_outputs(teacher, batches, reads, folder)
    cached = Distiller(student, task, terms, hard_label_weight=0.7)
    x, y = next(iter(batches.dataset()))
    found = cached.compute_loss(x, y, cached(x), weights)
    assert float(found) == pytest.approx(expected, rel=within)


def test_a_vector_of_each_text_to_choose_from_is_learned(tiny_config):
    task, error = TASKS["choosing"], cosine_distance
    teacher, student = (build_model(tiny_config, "chooser") for _ in range(2))
    batches = make_batches("choosing", tiny_config.vocabulary_size)
    indices = batches.batch_indices()[0]
    x = batches.batch(indices)[0]
    weights = np.array([1, 2, 0, 0.5, 1], "float32")
    a, b = (model(x)["pooled_output"].numpy() for model in (teacher, student))
    cosines = np.sum(a * b, -1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    expected = np.average(1 - cosines, weights=np.repeat(weights, 3))
    term = Term("pooled_output", "pooled_output", error)
    assert float(term.loss(teacher(x), student(x), x["padding_mask"], weights)) == pytest.approx(
        expected, rel=1e-5
    )
    batches.targets = compute_teacher_outputs(teacher, batches, [term.teacher])
    x, y = batches.batch(indices)
    assert y["pooled_output"].shape == (5, 3, 32)
    np.testing.assert_allclose(y["pooled_output"].reshape(15, 32), a, atol=1e-5)
    cached = Distiller(student, task, [term], hard_label_weight=0.0)
    found = cached.compute_loss(x, y, cached(x), weights)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_cached_outputs_of_choices_go_with_the_parts_of_a_batch(tiny_config, no_graphs):
    """A step in as many parts as there are examples is the step of the whole batch."""
    task, found = TASKS["choosing"], []
    config = dataclasses.replace(tiny_config, num_layers=2, dropout=0.0, attention_dropout=0.0)
    for parts in (1, 5):
        keras.utils.set_random_seed(0)
        teacher, student = (
            build_model(c, "chooser", hidden_states=True, attention_scores=True)
            for c in (config, dataclasses.replace(config, num_layers=1))
        )
        terms = logits(teacher, student, task, [1], TEMPERATURE, **WEIGHTS)
        batches = make_batches("choosing", config.vocabulary_size)
        reads = [term.teacher for term in terms]
        batches.targets = compute_teacher_outputs(teacher, batches, reads)
        distiller = Distiller(student, task, terms)
        distiller.accumulation_steps = parts
        distiller.compile(keras.optimizers.SGD(0.1), jit_compile=False)
        loss = distiller.fit(batches.dataset(), shuffle=False, verbose=0).history["loss"]
        found.append([*loss, *(np.asarray(w) for w in student.trainable_weights)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
