"""Every kind of teacher has its student found."""

import dataclasses

import pytest

from distill.export.options import Export
from distill.runtime import load_runner
from distill.search import Budget, SearchSpace, StudentFinder
from tests.distill.conftest import INPUTS
from tfnlp.checkpoints import read_labels, read_task_settings
from tfnlp.pipelines import read_kind
from tfnlp.pipelines.prediction_tasks import prediction_task
from tfnlp.training import RunFolder, Splits, TrainingConfig

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
    finder = StudentFinder(
        str(folder),
        task.task(),
        Splits(examples, examples, 16),
        tmp_path,
        lambda name, decisive: RunFolder(tmp_path / name, decisive),
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
    path, costs = finder.export(run, tokenizer)
    assert f"dev_{finder.task.monitor}" in figures
    assert costs.size_mb == pytest.approx(path.stat().st_size / 1e6)
    assert load_runner(path).kind == read_kind(folder)
