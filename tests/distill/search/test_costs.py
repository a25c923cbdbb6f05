"""Tables of costs: what they predict, and which they refuse."""

import dataclasses
import json

import numpy as np
import pytest

from distill.search import SearchSpace, SubStudent, read_table
from distill.search.cost_measurement import (
    check_covers,
    check_setting,
    file_paths,
    grid,
    read_results,
)
from distill.search.cost_table import CostTable, Measured, Setting
from tfnlp.utils.errors import InputError

SETTING = Setting("Phone", "bert", 384, 32, "int8", 32)
SPACE = SearchSpace((1, 2, 3, 6), (3, 6, 12), (384, 768, 1536), (8000, 15000))


def costs(layers, heads, units, tokens):
    ms = 0.05 + layers * (0.01 + 0.004 * heads + 6e-5 * units)
    return ms, 0.5 + layers * (0.1 * heads + 8e-4 * units) + 384e-6 * tokens


def table_of(students, noise=0.0):
    rng, rows = np.random.default_rng(0), []
    for x in students:
        sizes = len(x.layers), x.num_heads, x.intermediate_dim, x.vocabulary_size
        ms, size = costs(*sizes)
        rows.append(Measured(*sizes, ms * (1 + noise * rng.normal()), size))
    return CostTable(SETTING, rows)


def test_costs_are_predicted_from_the_grid():
    table = table_of(grid(SPACE))
    assert len(table.rows) == 9 and table.errors().max() < 1e-6
    predicted = table.predict(SubStudent((1, 4), 6, 768, 12000))
    assert (predicted.latency_ms, predicted.size_mb) == pytest.approx(costs(2, 6, 768, 12000))


@pytest.mark.parametrize("space", [((2,), (6,), (768,)), ((1, 2), (6,), (768,))])
def test_sizes_are_predicted_where_little_else_varies(space):
    table = table_of(grid(SearchSpace(*space, (8000, 15000))))
    for tokens in (8000, 15000):
        student = SubStudent(tuple(range(space[0][-1])), 6, 768, tokens)
        size = costs(space[0][-1], 6, 768, tokens)[1]
        assert table.predict(student).size_mb == pytest.approx(size)


def test_noise_shows_as_an_error():
    table = table_of(grid(SPACE), noise=0.1)
    assert 0.02 < table.errors().mean() < 0.5
    assert "% at worst" in table.describe()


def test_one_file_has_no_error():
    table = table_of([SubStudent((0, 1), 6, 768, 8000)])
    assert "one file" in table.describe()
    assert table.predict(SubStudent((2, 3), 6, 768, 8000)).latency_ms == pytest.approx(
        costs(2, 6, 768, 8000)[0]
    )


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = table_of(grid(SPACE), noise=0.1)
    table.write(tmp_path / "costs.tsv")
    assert read_table(tmp_path / "costs.tsv") == table


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda text: text.replace("Phone", "Other", 1), "one device"),
        (lambda text: text.replace("device", "phone", 1), "version"),
        (lambda text: text.replace("384", "wide", 1), "line 2"),
        (lambda text: text.splitlines()[0], "rows"),
    ],
)
def test_other_tables_are_refused(tmp_path, change, word):
    path = tmp_path / "costs.tsv"
    table_of(grid(SPACE)).write(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=word):
        read_table(path)


def test_a_table_of_other_files_is_refused():
    table = table_of(grid(SPACE))
    check_setting(table, dataclasses.replace(SETTING, device="Other"), "x.tsv")
    for change in ({"quantization": "float32"}, {"tokens": 16}):
        with pytest.raises(InputError, match=next(iter(change))):
            check_setting(table, dataclasses.replace(SETTING, **change), "x.tsv")


@pytest.mark.parametrize("name", ["num_layers", "num_heads", "intermediate_dim", "keep_tokens"])
def test_a_table_of_one_number_says_nothing_of_others(name):
    number = getattr(SPACE, name)[-1]
    narrow = dataclasses.replace(SPACE, **{name: (number,)})
    check_covers(table_of(grid(narrow)), narrow, "x.tsv")
    check_covers(table_of(grid(SPACE)), narrow, "x.tsv")
    with pytest.raises(InputError, match=f"{name}={number}, by which"):
        check_covers(table_of(grid(narrow)), SPACE, "x.tsv")


def test_times_of_a_phone_are_read_from_logs(tmp_path):
    space, logs = SearchSpace((1, 2), (6,), (384, 768), (8000,)), tmp_path / "logs"
    paths = file_paths(space, tmp_path, (32,))
    logs.mkdir()
    for number, path in enumerate(paths.values(), 1):
        path.write_bytes(bytes(1000 * number))
        text = f"Inference timings in us: Init: 9, Inference (avg): {number}234.5\n"
        (logs / f"{path.stem}.txt").write_text(text)
    first = next(iter(paths.values())).stem
    json_file = logs / f"{first}.json"
    json_file.write_text(json.dumps({"latency_ms": {"1": {"32": 0.5}}}))
    table = read_results(paths, tmp_path / "costs.tsv", logs, SETTING, 32)
    assert [row.latency_ms for row in table.rows[:2]] == [0.5, 2.2345]
    assert [row.size_mb for row in table.rows[:2]] == [0.001, 0.002]
    json_file.unlink()
    (logs / f"{first}.txt").unlink()
    with pytest.raises(InputError, match=first):
        read_results(paths, tmp_path / "costs.tsv", logs, SETTING, 32)
    of_64 = file_paths(space, tmp_path, (64,))
    for path, other in zip(paths.values(), of_64.values(), strict=True):
        path.rename(other)
    with pytest.raises(InputError, match="at 64 tokens is missing"):
        read_results(of_64, tmp_path / "costs.tsv", logs, SETTING, 64)
