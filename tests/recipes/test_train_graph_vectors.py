"""`train_graph_vectors` and `evaluate_graph_vectors`, from the shell."""

import json

import numpy as np
import pytest

from tests.recipes.refusals import check_refusals
from tfnlp.baselines import WordVectors

STEPS = {"next": 1, "second": 2}


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.tsv"
    rows = [f"e{i}\t{name}\te{(i + step) % 12}" for i in range(12) for name, step in STEPS.items()]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_vectors_are_trained_and_scored(graph, run, refused, tmp_path):
    folder = tmp_path / "vectors"
    flags = [f"--graph={graph}", "--dim=8", "--epochs=3", "--norm=2", "--held_out=0.1"]
    trained = run("train_graph_vectors", *flags, f"--output_dir={folder}").stdout
    scores = json.loads((folder / "figures.json").read_text())
    assert f"mrr {scores['mrr']:.4f}" in trained
    assert len((folder / "dev.tsv").read_text().splitlines()) == 2
    flags.append(f"--output_dir={folder}")
    done = run("train_graph_vectors", *flags)
    assert "is complete; nothing to train" in done.stderr and done.stdout == trained
    assert "there --dim is 8, here 6" in refused("train_graph_vectors", *flags, "--dim=6")
    assert run("train_graph_vectors", *flags, "--overwrite").stdout == trained
    flags = [f"--vectors_dir={folder}", f"--test={folder / 'dev.tsv'}"]
    known = f"--known={folder / 'train.tsv'}"
    assert run("evaluate_graph_vectors", *flags, known).stdout == trained


def test_bad_flags_are_told_without_tensorflow(graph, tmp_path):
    dev, broken = tmp_path / "dev.tsv", tmp_path / "broken.tsv"
    dev.write_text("e0\tnext\te1\ne0\tnxt\te1\n")
    broken.write_text("e0 next e1\n")
    cases = {
        "--norm=2 --method=rotate": "--norm=2 has no effect with --method=rotate",
        "--temperature=2": "--temperature=2 has no effect with --loss=margin",
        "--language=ko": "--language=ko has no effect with --format=triples",
        f"--dev={dev} --split_seed=1": "--split_seed=1 has no effect beside --dev",
        f"--dev={dev}": "dev.tsv, line 2: the relation 'nxt' is not in the graph",
        "--relations=third": "--relations=third is unknown; use one of next, second",
        f"--graph={broken}": "broken.tsv, line 1: expected head, relation and tail",
        f"--graph={tmp_path} --format=wordnet": "install WordNet 3.0 (apt-get install",
        f"--graph={tmp_path}": "is a folder; give --format=wordnet, or a file",
        "--held_out=0.001": "with --held_out=0.001, since each",
    }
    check_refusals("train_graph_vectors", [f"--graph={graph}", f"--output_dir={tmp_path}"], cases)
    # Names that saved vectors lack.
    for name, words in (("entities", ["e0", "e1"]), ("relations", ["next"])):
        WordVectors(words, np.ones((len(words), 4))).save(tmp_path / f"{name}.bin")
    (tmp_path / "test.tsv").write_text("e0\tnext\te1\n")
    (tmp_path / "entity.tsv").write_text("e0\tnext\te1\ne0\tnext\te2\n")
    cases = {
        f"--test={dev}": "line 2: the relation 'nxt' is not in the graph",
        f"--test={tmp_path}/test.tsv --known={tmp_path}/entity.tsv": "line 2: the entity 'e2'",
        f"--test={tmp_path}/test.tsv": "",
    }
    check_refusals("evaluate_graph_vectors", [f"--vectors_dir={tmp_path}"], cases)
