"""Teachers of folders: of the task, of one tokenizer, of another precision."""

import keras
import numpy as np
import pytest

from distill.learning import (
    Distillation,
    Phase,
    Teacher,
    load_shared_tokenizer,
    load_teacher,
    make_terms,
    read_teacher_labels,
    soft_label_terms,
)
from distill.learning.distiller import Distiller
from distill.learning.teacher_outputs import compute_teacher_outputs
from tests.distill.learning.test_all_tasks import make_batches
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification, Regression, Tagging
from tfnlp.text import Examples, WordPieceTokenizer
from tfnlp.training import RunFolder, Splits, TrainingConfig
from tfnlp.utils.errors import InputError


def test_teachers_of_another_task_are_refused(small_config, tmp_path):
    def folder(name, head, classes=None, labels=None):
        save_model(build_model(small_config, head, classes), tmp_path / name, labels)
        return tmp_path / name

    tagger = folder("tagger", "tagger", 3, ["O", "B-x", "I-x"])
    scorer = folder("scorer", "classifier", 1, ["score"])
    classifier = folder("classifier", "classifier", 2, ["bad", "good"])
    unnamed = folder("unnamed", "classifier", 2)
    encoder = folder("encoder", None)
    classes = Classification(["bad", "good"])
    for path, task, word in (
        (tagger, classes, "'classifier'"),
        (encoder, Tagging(["O", "B-x", "I-x"]), "without a head"),
        (scorer, classes, "a number"),
        (classifier, Regression(), "a number"),
        (tagger, Tagging(["O", "B-x"]), "2 classes"),
        (classifier, Classification(["good", "bad"]), "their order"),
    ):
        with pytest.raises(InputError, match=word):
            load_teacher(path, task)
    assert load_teacher(unnamed, classes, hidden_states=True).head == "classifier"
    assert load_teacher(scorer, Regression()).output["logits"].shape[-1] == 1
    assert read_teacher_labels(classifier, "classifier") == ["bad", "good"]
    assert read_teacher_labels(scorer, "classifier") is None
    with pytest.raises(InputError, match="'tagger'"):
        read_teacher_labels(scorer, "tagger")


def test_tokens_and_weights_that_do_not_fit_are_refused(small_config, tokenizer, tmp_path):
    task = Classification(["bad", "good"])
    train = Examples(["a fine film", "the plot is dull"], None, [1, 0], task.label_names)
    teacher, student = (
        build_model(small_config, "classifier", 2, hidden_states=True) for _ in range(2)
    )
    swapped = WordPieceTokenizer([*tokenizer.vocabulary[:5], *tokenizer.vocabulary[:4:-1]])
    fewer = WordPieceTokenizer(tokenizer.vocabulary[:21])
    states = make_terms("logits", teacher, student, task, hidden_state_weight=1.0)
    fields = {"config": TrainingConfig(epochs=1), "run": RunFolder(tmp_path / "run", {})}
    data = Splits(train, train, 128)
    for own, phases, word in ((swapped, [Phase(states)], "by token"), (fewer, None, "21 tokens")):
        fields |= {"phases": phases, "teacher": Teacher([teacher], own, task)}
        with pytest.raises(InputError, match=word):
            Distillation(task, student, tokenizer, data, **fields).run_all()
    for weights in ((1, 2, 3), (-1, 2), (0, 0), (float("nan"), 1)):
        with pytest.raises(InputError, match="here 2"):
            Teacher([teacher, teacher], tokenizer, task, weights)
    with pytest.raises(InputError, match="here 1"):
        Teacher([teacher], tokenizer, task, (1,))


def test_teachers_of_several_tokenizers_are_refused(tokenizer, tmp_path):
    swapped = WordPieceTokenizer([*tokenizer.vocabulary[:5], *tokenizer.vocabulary[:4:-1]])
    for name, own in (("a", tokenizer), ("b", tokenizer), ("c", swapped)):
        own.save(tmp_path / name)
    a, b, c = (str(tmp_path / name) for name in "abc")
    assert load_shared_tokenizer([a, b]).to_json() == tokenizer.to_json()
    with pytest.raises(InputError, match=c):
        load_shared_tokenizer([a, b, c])


def test_a_teacher_in_bfloat16_predicts_the_same(small_config, tokenizer, tmp_path):
    task = Classification(["bad", "good"])
    keras.utils.set_random_seed(2)
    save_model(build_model(small_config, "classifier", 2), tmp_path, task.label_names)
    whole, half = (load_teacher(tmp_path, task, dtype=dtype) for dtype in (None, "bfloat16"))
    assert whole.get_layer("encoder_0").compute_dtype == "float32"
    assert {w.dtype for w in half.get_layer("encoder_0").weights} == {"bfloat16"}
    inputs = tokenizer(["a fine film", "the plot is dull", "영화 정말 좋다", "x , . un"] * 2)
    a, b = (model(inputs, training=False)["logits"].numpy() for model in (whole, half))
    assert b.dtype == "float32"
    np.testing.assert_allclose(b, a, atol=0.03 * np.abs(a).max())
    assert np.abs(b - a).max() > 1e-5
    np.testing.assert_array_equal(a.argmax(1), b.argmax(1))

    # A student in float32 learns from its outputs, live or cached, as float32.
    batches = make_batches("classification", 28)
    student = build_model(small_config, "classifier", 2)
    terms = soft_label_terms(task)
    live = Distiller(student, task, terms, half, hard_label_weight=0.0)
    x, labels = batches.batch(np.arange(5))
    labels = labels % 2
    expected = float(live.compute_loss(x, labels, live(x)))
    reads = [("logits", None)]
    cache = compute_teacher_outputs(half, batches, reads, tmp_path / "cache")
    y = {"labels": labels, **cache.batch(np.arange(5), 7)}
    cached = Distiller(student, task, terms, hard_label_weight=0.0)
    assert float(cached.compute_loss(x, y, cached(x))) == pytest.approx(expected, rel=2e-2)
    with pytest.raises(InputError, match="of another teacher; delete it or give another"):
        compute_teacher_outputs(whole, batches, reads, tmp_path / "cache")
