"""Batches in epochs: any of them alone, by this process or by others."""

import itertools
import multiprocessing
import os
import signal

import numpy as np
import pytest

from tests.corpora.test_corpus_preparation import by_lines, drawn_documents
from tfnlp.corpora import prepare_corpus
from tfnlp.objectives import MaskedLM, open_corpus
from tfnlp.training.experiments.pretraining import FixedStepEpochs
from tfnlp.utils.errors import InputError


@pytest.fixture(scope="module")
def batches(tokenizer, tmp_path_factory):
    """31 batches of a pass over a folder, in epochs of 40."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text("\n".join(drawn_documents(60)), encoding="utf-8")
    prepare_corpus([folder / "a.txt"], tokenizer, folder / "corpus", by_lines())
    corpus = open_corpus(folder / "corpus", tokenizer)
    made = MaskedLM(packing="sentences").batches(corpus, tokenizer, 5, 16)
    assert len(made) == 31
    return FixedStepEpochs(made, 40)


def assert_equal(some, others):
    for (inputs, labels), (other_inputs, other_labels) in zip(some, others, strict=True):
        assert inputs.keys() == other_inputs.keys()
        for name, values in inputs.items():
            np.testing.assert_array_equal(values, other_inputs[name])
        np.testing.assert_array_equal(labels, other_labels)


def test_processes_make_the_same_batches_in_order_and_a_killed_one_is_told(batches, monkeypatch):
    expected = [*batches.epoch(1)]
    assert len(expected) == 40
    assert_equal([batches.make(batches.plan(1), 1, 25)], expected[25:26])
    monkeypatch.setattr(batches, "processes", 2)
    made = batches.epoch(1, 3)
    assert_equal(itertools.islice(made, 20), expected[3:23])
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(InputError, match="was killed, perhaps as memory ran out; resume with"):
        list(made)
