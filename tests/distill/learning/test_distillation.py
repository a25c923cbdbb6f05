"""`Distillation`: from examples to a finished run, killed or not, and what does not fit."""

import dataclasses

import keras
import numpy as np
import pytest

from distill.learning import (
    METHODS,
    Distillation,
    Phase,
    Teacher,
    make_student,
    soft_label_terms,
    split_phases,
)
from distill.learning.methods import attention_score_terms, hidden_state_terms
from tests.kills import KILLS, killed_after
from tfnlp.checkpoints import load_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification, Tagging
from tfnlp.tasks.tagging import TaggedSentences
from tfnlp.text import Examples, WordPieceTokenizer, load_tokenizer
from tfnlp.training import RunFolder, Splits, TrainingConfig, predict
from tfnlp.training.run.run_folder import TIMES
from tfnlp.utils.errors import InputError

TASK = Tagging(["O", "B-x", "I-x"])
SENTENCES = [["a", "fine", "film"], ["un", "film"], ["the", "plot", "is", "dull"]]
TAGS = [["O", "B-x", "I-x"], ["O", "O"], ["O", "B-x", "O", "O"]]
TRAIN = TaggedSentences(SENTENCES * 4, TAGS * 4)
DEV = TaggedSentences(SENTENCES, TAGS)
DATA = Splits(TRAIN, DEV, 128)
CONFIG = TrainingConfig(epochs=2, batch_size=4, learning_rate=1e-2, checkpoint_steps=2)


def distil(teacher, student, tokenizer, data, config, run, phases=None):
    fields = {"config": config, "run": run, "teacher": teacher, "phases": phases}
    return Distillation(teacher.task, student, tokenizer, data, **fields).run_all()


@pytest.fixture(scope="module")
def small_config(tiny_config):
    return dataclasses.replace(tiny_config, num_layers=2)


@pytest.fixture(scope="module")
def teacher(small_config):
    keras.utils.set_random_seed(1)
    return build_model(small_config, "tagger", 3, hidden_states=True)


def test_a_killed_distillation_ends_with_the_same_weights(teacher, tokenizer, tmp_path, no_graphs):
    def run(folder, stop_after=None, cache=tmp_path / "cache"):
        keras.utils.set_random_seed(0)
        student = make_student(teacher, 1, hidden_dim=16)
        terms = METHODS["logits"](teacher, student, TASK, [1], hidden_state_weight=0.3)
        folder = RunFolder(folder, {})
        with killed_after(stop_after):
            owner = Teacher([teacher], tokenizer, TASK, cache_dir=cache)
            data = Splits(TRAIN, DEV, 16, DEV)
            figures = distil(owner, student, tokenizer, data, CONFIG, folder, [Phase(terms)])
        return figures, [*student.weights, terms[-1].projection.kernel], folder

    figures, whole, folder = run(tmp_path / "whole")
    # Of 3 batches an epoch the second of the second epoch is the last; the cache is read.
    with pytest.raises(KILLS):
        run(tmp_path / "broken", stop_after=5)
    # States are rounded in a cache: without it the run would end elsewhere.
    with pytest.raises(InputError, match="broken was trained with cache_dir; do so to go on"):
        run(tmp_path / "broken", cache=None)
    resumed_figures, resumed, broken = run(tmp_path / "broken")
    assert resumed_figures == figures
    for a, b in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(a, b)

    for a, b in zip(folder.metrics(), broken.metrics(), strict=True):
        assert a.keys() == b.keys()
        for key in a.keys() - {*TIMES}:
            assert b[key] == pytest.approx(a[key], abs=1e-6)
    *_, last = folder.metrics()
    assert {key for key in last if key.endswith("loss")} == {
        *("loss", "hard_label_loss", "soft_label_loss", "hidden_state_loss"),
        "val_hard_label_loss",
    }
    parts = 0.5 * last["hard_label_loss"] + 0.5 * last["soft_label_loss"]
    assert last["loss"] == pytest.approx(parts + 0.3 * last["hidden_state_loss"], rel=1e-5)

    student = load_model(folder.best, "tagger")
    assert figures["parameters"] == student.count_params()
    assert figures["teacher_parameters"] == teacher.count_params()
    assert figures["dev_f1"] == max(m["val_f1"] for m in folder.metrics())
    assert figures["test_f1"] == figures["dev_f1"]
    words = {key for key in figures if "word_accuracy" in key}
    scored = [f"{a}{b}" for a in ("", "teacher_") for b in ("dev", "test")]
    scored += ["dev_baseline", "test_baseline"]
    assert words == {f"{name}_word_accuracy" for name in scored}
    kept = figures["dev_f1"] / figures["teacher_dev_f1"] if figures["teacher_dev_f1"] else None
    assert figures.get("share_of_teacher") == kept


def test_intermediate_layers_come_first_and_a_kill_in_either_phase_changes_nothing(
    tiny_config, tokenizer, tmp_path, no_graphs
):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
    keras.utils.set_random_seed(1)
    config = dataclasses.replace(tiny_config, **sizes)
    outputs = {"hidden_states": True, "attention_scores": True}
    teacher = build_model(config, "tagger", 3, **outputs)

    def run(folder, stop_after=None, overwrite=False):
        """To the end, or to the batch that is one too many."""
        keras.utils.set_random_seed(0)
        student = make_student(teacher, 1, hidden_dim=4, num_heads=2)
        terms = METHODS["tinybert"](teacher, student, TASK)
        folder = RunFolder(folder, {}, overwrite)
        # The first phase has no score that a patience could wait for.
        config = dataclasses.replace(CONFIG, patience=2)
        owner, phases = Teacher([teacher], tokenizer, TASK), split_phases(terms, TASK, 1)
        with killed_after(stop_after):
            distil(owner, student, tokenizer, DATA, config, folder, phases)
        return [w.numpy() for w in student.weights], folder

    whole, folder = run(tmp_path / "whole")
    (first,) = folder.intermediate().metrics()
    shown = {key for key in first if key.endswith("loss")} - {"loss", "hard_label_loss"}
    assert shown == {"embedding_loss", "hidden_state_loss", "attention_score_loss"}
    parts = sum(first[key] for key in shown)
    assert first["loss"] == pytest.approx(parts, rel=1e-5)
    assert [set(m) & shown for m in folder.metrics()] == [set(), set()]
    assert all("soft_label_loss" in m for m in folder.metrics())
    assert (tmp_path / "whole/intermediate/curves.png").stat().st_size > 1000

    # The third batch of the first phase, then, that one read again, the sixth of the second.
    for stop_after in (2, 6):
        with pytest.raises(KILLS):
            run(tmp_path / "broken", stop_after)
    assert len(RunFolder(tmp_path / "broken", {}).metrics()) == 1
    resumed, _ = run(tmp_path / "broken")
    for a, b in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(a, b)
    # Overwritten, both phases begin anew.
    with pytest.raises(KILLS):
        run(tmp_path / "broken", 0, overwrite=True)
    assert not RunFolder(tmp_path / "broken", {}).state_path.exists()
    assert not list((tmp_path / "broken").rglob("state.safetensors"))


def test_a_student_of_fewer_tokens_learns_what_the_teacher_says_of_each_text(
    tiny_config, tokenizer, tmp_path, no_graphs
):
    config = dataclasses.replace(tiny_config, num_layers=1, dropout=0.0, attention_dropout=0.0)
    teacher = build_model(config, "classifier", 2, hidden_states=True)
    small = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "a", "zz"])
    own = {"tokenizer": small, "teacher_tokenizer": tokenizer}
    student = make_student(teacher, 1, **own)
    assert student.text_config.vocabulary_size == 8
    tables = [m.get_layer("embeddings").token_table.numpy() for m in (student, teacher)]
    for row, token in ((2, "[CLS]"), (5, "film"), (6, "a")):
        np.testing.assert_array_equal(tables[0][row], tables[1][tokenizer.token_id(token)])
    texts = ["a fine film", "the plot is dull", "film", "not a film !", "un film"]
    train = Examples(texts, None, [1, 0, 1, 0, 1], ["bad", "good"])
    task = Classification(["bad", "good"])
    answers = [
        predict(model, of, texts)["logits"]
        for model, of in ((teacher, tokenizer), (student, small))
    ]
    p, q = (np.exp(x / 2) / np.exp(x / 2).sum(1, keepdims=True) for x in answers)
    still = TrainingConfig(epochs=1, batch_size=2, learning_rate=0.0)
    run = RunFolder(tmp_path / "run", {})
    owner, data = Teacher([teacher], tokenizer, task), Splits(train, train, 128)
    figures = distil(owner, student, small, data, still, run)
    (epoch,) = run.metrics()
    due = 4 * np.mean(np.sum(p * np.log(p / q), 1))
    assert due > 1e-3 and epoch["soft_label_loss"] == pytest.approx(due, rel=1e-4)
    right = np.mean(answers[0].argmax(1) == train.labels)
    assert figures["teacher_dev_accuracy"] == pytest.approx(right)
    saved = load_tokenizer(run.best)
    np.testing.assert_array_equal(saved.encode(texts).token_ids, small.encode(texts).token_ids)
    phases = [Phase(hidden_state_terms([0]))]
    with pytest.raises(InputError, match="'hidden_state' compares hidden_states by token, but"):
        distil(owner, student, small, data, still, run, phases)


def test_models_and_losses_that_do_not_fit_are_refused_before_work(
    teacher, small_config, tokenizer, tmp_path
):
    student = make_student(teacher, 1)
    classifier = build_model(small_config, "classifier", 3)
    bare, two = (build_model(small_config, "tagger", classes) for classes in (3, 2))
    learns = Phase(soft_label_terms(TASK))
    for models, phases, words in (
        ((classifier, student), None, "The teacher .*'classifier'"),
        ((teacher, two), None, "The student .* 2 classes"),
        ((teacher, student), [Phase(attention_score_terms([1]))], "attention_scores 1, .* teach"),
        ((teacher, student), [Phase(hidden_state_terms([2]))], r"hidden_states \(0 to 2\)"),
        ((teacher, bare), [Phase(hidden_state_terms([1]))], "hidden_states 0, .* student"),
        ((teacher, student), [learns, learns], "no epochs"),
        ((teacher, student), [Phase([], 1, hard_label_weight=0.0), learns], "hard_label_weight"),
    ):
        run, owner = RunFolder(tmp_path / "run", {}), Teacher([models[0]], tokenizer, TASK)
        with pytest.raises(InputError, match=words):
            distil(owner, models[1], tokenizer, DATA, CONFIG, run, phases)
    with pytest.raises(InputError, match="intermediate_epochs=1"):
        split_phases(soft_label_terms(TASK), TASK, 1)
    assert not (tmp_path / "run").exists()
