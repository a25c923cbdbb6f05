"""Every kind of teacher has its student found."""

import dataclasses
import itertools

import keras
import numpy as np
import pytest

from distill.export.options import Export
from distill.learning import VectorImitation
from distill.learning.vector_imitation import PlainTexts
from distill.runtime import load_runner
from distill.search import (
    Budget,
    SearchSpace,
    StudentFinder,
    cost_measurement,
    extract,
    student_finder,
)
from distill.search.cost_table import CostTable, Measured
from tests.distill.conftest import INPUTS
from tests.models.small import sizes
from tfnlp.checkpoints import load_model, read_labels, read_task_settings, save_model
from tfnlp.models import AlbertConfig, BertConfig, ElectraConfig, build_model
from tfnlp.pipelines import read_kind
from tfnlp.pipelines.prediction_tasks import prediction_task
from tfnlp.tasks import Classification, TextGroups
from tfnlp.tasks.vector_settings import VectorSettings
from tfnlp.text import Examples
from tfnlp.training import RunFolder, Splits, TrainingConfig
from tfnlp.utils.errors import InputError

GOLD = {
    "multi-label classifier": [["bad"], ["good"], [], ["bad", "good"], ["good"]],
    "scorer": [0.5, 1.0, 2.0, 0.0, 1.5],
    "tagger": [["O", "B-x"]] * 5,
    "answerer": [[(2, "fine")], [(0, "정말")], [(4, "plot")], [(0, "dull")], [(4, "film")]],
    "chooser": [0, 1, 0, 1, 0],
}


@pytest.mark.parametrize("kind", GOLD)
def test_a_student_of_each_kind_is_found(kind, folders_and_files, tmp_path):
    folder = folders_and_files[0][kind]
    task = prediction_task(read_kind(folder), read_labels(folder), read_task_settings(folder))
    inputs = dataclasses.replace(INPUTS[kind], gold=GOLD[kind])
    if kind == "tagger":
        inputs.texts = [["fine", "film"]] * 5
    if kind == "answerer":
        inputs.ids = [*"abcde"]
    examples = task.examples(inputs)
    find(folder, task.task(), Splits(examples, examples, 16), tmp_path)


def test_a_student_of_vectors_is_found(tokenizer, tmp_path):
    config = BertConfig(**sizes(vocabulary_size=tokenizer.vocabulary_size))
    save_model(build_model(config, "embedder"), tmp_path / "teacher", None, tokenizer)
    texts = INPUTS["classifier"].texts
    pairs = TextGroups([*itertools.pairwise(texts)], [0.1, 0.9, 0.3, 0.5])
    task = VectorImitation(VectorSettings("cosent", num_texts=2))
    find(tmp_path / "teacher", task, Splits(PlainTexts(texts), pairs, 16), tmp_path)


def find(teacher, task, data, folder):
    """Find a student, and check its figures and its file."""
    finder = StudentFinder(
        str(teacher),
        task,
        data,
        folder,
        lambda name, decisive: RunFolder(folder / name, decisive),
        SearchSpace(),
        Budget(size_mb=5),
        Export(max_length=16),
        8,
    )
    table = finder.measure()
    config = TrainingConfig(epochs=1, batch_size=4)
    tried = finder.search(finder.train_supernet(config), table, 2)
    run, tokenizer, figures = finder.finish(
        finder.train_supernet(config), tried[0].student, config
    )
    (start,) = map(read_task_settings, (folder / "starts").iterdir())
    assert start["max_length"] == 16 and "thresholds" not in start  # those of the whole supernet
    path, costs = finder.export(run, tokenizer)
    assert f"dev_{finder.task.monitor}" in figures
    assert costs.size_mb == pytest.approx(path.stat().st_size / 1e6)
    assert load_runner(path).kind == read_kind(teacher)


def save_teacher(config, tokenizer, folder, settings=None, labels=("a", "b")):
    """Save a classifier of random weights in folder / "teacher"."""
    config = config(**sizes(vocabulary_size=tokenizer.vocabulary_size))
    model = build_model(config, "classifier", len(labels))
    save_model(model, folder / "teacher", [*labels], tokenizer, settings)


def finder_of(folder, text="fine", space=None, labels=("a", "b"), **options):
    """Return a `StudentFinder` of the teacher of `save_teacher`."""
    examples = Examples([text, "dull"], None, [0, 1], [*labels])
    data, task = Splits(examples, examples, 16), Classification([*labels])
    settings = space or SearchSpace(), Budget(latency_ms=1), Export(max_length=16, **options)
    return StudentFinder(
        str(folder / "teacher"),
        task,
        data,
        folder,
        lambda name, decisive: RunFolder(folder / name, decisive),
        *settings,
    )


def test_a_teacher_whose_layers_are_one_is_refused_at_once(tokenizer, tmp_path):
    save_teacher(AlbertConfig, tokenizer, tmp_path)
    with pytest.raises(InputError, match="left out"):
        finder_of(tmp_path)


def test_tables_of_tokens_take_a_share_of_the_file():
    widths = {"hidden_dim": 256, "num_heads": 4}
    counts = student_finder.default_tokens(ElectraConfig(embedding_dim=128, **widths), 5, "int8")
    assert counts == [13700, 19500, 25400]  # 35, 50 and 65 % of 5 MB, by 128 bytes
    assert student_finder.default_tokens(BertConfig(**widths), 10, "int8") == counts
    assert student_finder.default_tokens(BertConfig(**widths), None, "int8") == [30522]


def test_tokens_are_chosen_once(tokenizer, tmp_path, monkeypatch):
    save_teacher(BertConfig, tokenizer, tmp_path)
    chosen, choose = [], student_finder.choose_tokens
    monkeypatch.setattr(
        student_finder, "choose_tokens", lambda *x: chosen.append(x[-1]) or choose(*x)
    )
    size = tokenizer.vocabulary_size
    finder = finder_of(tmp_path, space=SearchSpace(keep_tokens=(size - 5, size - 2, size)))
    for _ in range(2):
        models = finder.with_tokens(finder.teacher)
        assert sorted(models) == [*finder.space.keep_tokens]
        for count, (model, pruned) in models.items():
            assert model.text_config.vocabulary_size == pruned.vocabulary_size == count
    assert chosen == [size - 5, size - 2]


def test_parts_of_other_data_or_options_are_made_anew(tokenizer, tmp_path, monkeypatch):
    save_teacher(BertConfig, tokenizer, tmp_path)
    ordered, written = [], []

    def order(teacher, *data):
        ordered.append(data)
        return teacher

    def write(paths, models, labels, options):
        (tmp_path / "costs" / "x.tflite").touch(exist_ok=False)
        written.append(options)

    monkeypatch.setattr(student_finder, "order_by_importance", order)
    monkeypatch.setattr(cost_measurement, "write_files", write)
    monkeypatch.setattr(cost_measurement, "measure", lambda *_: None)

    def measure(text, **options):
        finder_of(tmp_path, text, **options).measure()

    measure("fine")
    (tmp_path / "costs" / "x.tflite").unlink()  # as if killed
    measure("fine")
    assert len(ordered) == 1 and len(written) == 2
    measure("fine", quantization="float32")
    measure("superb", fixed_lengths=(8,))
    assert len(ordered) == 2 and len(written) == 4
    save_teacher(BertConfig, tokenizer, tmp_path, labels="abc")
    measure("superb", fixed_lengths=(8,), labels="abc")
    assert len(ordered) == 3 and len(written) == 5
    save_teacher(BertConfig, tokenizer, tmp_path)
    monkeypatch.setattr(student_finder, "save_model", lambda *_: 1 / 0)  # as if killed
    with pytest.raises(ZeroDivisionError):
        measure("dull")
    monkeypatch.undo()
    monkeypatch.setattr(student_finder, "order_by_importance", order)
    finder_of(tmp_path, "superb").order()
    assert len(ordered) == 5
    caches = {finder_of(tmp_path, text)._teacher().cache_dir for text in ("fine", "superb")}
    assert len(caches) == 2


def test_files_are_made_in_float32_whatever_the_training(tokenizer, tmp_path, monkeypatch):
    save_teacher(BertConfig, tokenizer, tmp_path)
    keras.config.set_dtype_policy("mixed_bfloat16")
    made = []

    def write(paths, models, *_):
        ((model, _),) = models.values()
        made.append(extract(model, next(iter(paths))))

    monkeypatch.setattr(student_finder, "order_by_importance", lambda teacher, *_: teacher)
    monkeypatch.setattr(cost_measurement, "write_files", write)
    monkeypatch.setattr(cost_measurement, "measure", lambda *_: None)
    finder = finder_of(tmp_path)
    finder.measure()
    assert {layer.compute_dtype for layer in made[0].layers} == {"float32"}
    trained = load_model(finder.order(), "classifier", 2)
    assert trained.get_layer("encoder_0").compute_dtype == "bfloat16"


def test_a_table_of_other_fixed_lengths_is_refused(tokenizer, tmp_path):
    save_teacher(BertConfig, tokenizer, tmp_path)
    of_any_length, fixed = (finder_of(tmp_path, fixed_lengths=x) for x in ((), (8, 12, 16)))
    of_any_length.tokens = fixed.tokens = 10
    assert [x.setting().tokens for x in (of_any_length, fixed)] == [10, 12]
    CostTable(fixed.setting("Phone"), [Measured(1, 1, 8, 9, 1.0, 1.0)]).write(tmp_path / "x.tsv")
    with pytest.raises(InputError, match="tokens 12, not 10"):
        of_any_length.read_costs(tmp_path / "x.tsv")


def test_the_ordered_teacher_answers_as_before(tokenizer, tmp_path, monkeypatch):
    settings = {"threshold": 0.7, "none_label": "none", "max_length": 20}
    save_teacher(BertConfig, tokenizer, tmp_path, settings)
    monkeypatch.setattr(student_finder, "order_by_importance", lambda teacher, *_: teacher)
    assert read_task_settings(finder_of(tmp_path).order()) == settings


def test_trainings_draw_the_same_numbers_whatever_was_done_before(
    tokenizer, tmp_path, monkeypatch
):
    save_teacher(BertConfig, tokenizer, tmp_path)
    started = []

    class Untrained:
        def __init__(self, task, model, tokenizer, run, **_):
            self.model, self.tokenizer, self.run = model, tokenizer, run

        def save(self, folder):
            save_model(self.model, folder, ["a", "b"], self.tokenizer)

        def run_all(self):
            started.append([np.asarray(x) for x in self.model.variables])
            self.run.start()
            self.save(self.run.best)

    def order(teacher, *_):
        keras.layers.Dropout(0.1)  # draws a seed, as every model does
        return teacher

    monkeypatch.setattr(student_finder, "Distillation", Untrained)
    monkeypatch.setattr(student_finder, "SupernetDistillation", Untrained)
    monkeypatch.setattr(student_finder, "order_by_importance", order)
    config = TrainingConfig()
    for _ in range(2):  # the second finds the ordered teacher
        finder = finder_of(tmp_path)
        model = finder.train_supernet(config)
        finder.finish(model, finder.space.smallest(2), config)
    for first, second in zip(started[:2], started[2:], strict=True):
        for values in zip(first, second, strict=True):
            np.testing.assert_array_equal(*values)
