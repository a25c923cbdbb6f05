"""Files of triples, parts of graphs and held-out edges."""

import itertools

import numpy as np
import pytest

from tfnlp.knowledge import (
    KnowledgeGraph,
    hold_out,
    number_triples,
    read_triples,
    select_triples,
    write_triples,
)
from tfnlp.utils.errors import InputError


def test_files_are_read_as_they_are_written(tmp_path):
    path = tmp_path / "graph.tsv"
    path.write_text("cat\tis_a\tanimal\ncat\teats\tmouse\nmouse\tis_a\tanimal\n")
    graph = read_triples(path)
    assert graph.entities == ["cat", "animal", "mouse"] and graph.relations == ["is_a", "eats"]
    write_triples(tmp_path / "again.tsv", graph, graph.triples)
    assert (tmp_path / "again.tsv").read_text() == path.read_text()
    numbers = number_triples(path, graph.entities, graph.relations)
    np.testing.assert_array_equal(numbers, graph.triples)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cat\tis_a", "line 2: expected head, relation and tail"),
        ("cat\t\tanimal", "line 2: expected head, relation and tail"),
        ("house cat\tis_a\tanimal", "line 2: expected head, relation and tail"),
        ("cat\tisa\tanimal", r"line 2: the relation 'isa' is not in the graph"),
        ("cat\tis_a\tplant", "line 2: the entity 'plant' is not in the graph"),
    ],
)
def test_malformed_lines_and_unknown_names_are_told(line, expected, tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text(f"cat\tis_a\tanimal\n{line}\n")
    with pytest.raises(InputError, match=f"dev.tsv, {expected}"):
        number_triples(path, ["cat", "animal"], ["is_a"])


def test_relations_and_common_entities_are_selected():
    triples = [("a", "x", "b"), ("a", "y", "c"), ("c", "x", "b"), ("d", "x", "a"), ("b", "x", "a")]
    graph = KnowledgeGraph.from_names(triples)
    part = select_triples(graph, ["x"], 3)
    assert part.entities == ["a", "b", "c"] and part.relations == ["x"]
    assert part.triples.tolist() == [[0, 0, 1], [2, 0, 1], [1, 0, 0]]
    assert part.lemmas == {"a": [0], "b": [1], "c": [2]}
    everything = select_triples(graph)
    np.testing.assert_array_equal(everything.triples, graph.triples)
    with pytest.raises(InputError, match="relations=z is unknown"):
        select_triples(graph, ["z"])
    with pytest.raises(InputError, match="no triple of relations=y"):
        select_triples(graph, ["y"], 1)


def test_inverses_are_on_one_side_and_every_name_is_trained():
    names = [f"e{i}" for i in range(40)]
    pairs = [(a, b) for a, b in itertools.combinations(names, 2) if (int(a[1:]) + int(b[1:])) % 4]
    triples = [(a, "hypernym", b) for a, b in pairs] + [(b, "hyponym", a) for a, b in pairs]
    triples += [("e0", "once", "e1"), ("lone", "hypernym", "e0")]
    graph = KnowledgeGraph.from_names(triples)
    train, held_out = hold_out(graph, 0.2)
    assert len(train) + len(held_out) == len(triples)
    assert 0.19 * len(triples) < len(held_out) <= 0.2 * len(triples)
    sides = [{frozenset((h, t)) for h, _, t in part.tolist()} for part in (train, held_out)]
    assert not sides[0] & sides[1]
    assert set(train[:, [0, 2]].ravel()) == set(range(len(graph.entities)))
    assert set(train[:, 1]) == {0, 1, 2}
    again = hold_out(graph, 0.2)
    np.testing.assert_array_equal(again[1], held_out)
    assert not np.array_equal(hold_out(graph, 0.2, seed=1)[1], held_out)


def test_no_entity_loses_its_last_triple():
    star = [("a", "x", name) for name in "bcd"]  # each of b, c and d has one triple
    with pytest.raises(InputError, match=r"None of 3 triples can be held out"):
        hold_out(KnowledgeGraph.from_names(star), 0.5)
    graph = KnowledgeGraph.from_names([*star, ("b", "x", "c")])  # d's cannot be held out
    for seed in range(8):
        held_out = hold_out(graph, 0.25, seed)[1]
        assert len(held_out) == 1 and graph.entities.index("d") not in held_out[:, [0, 2]]
