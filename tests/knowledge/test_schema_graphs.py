"""Schema graphs: all paths, as networkx finds them, and their arrays."""

import itertools

import networkx
import numpy as np
import pytest

from tfnlp.baselines import WordVectors
from tfnlp.knowledge import KnowledgeGraph, SchemaGraphs, concept_vectors
from tfnlp.utils.errors import InputError

BIRDS = [
    ("bird", "can", "fly"),
    ("wing", "part_of", "bird"),
    ("wing", "used_for", "fly"),
    ("plane", "can", "fly"),
    ("hot_air_balloon", "can", "fly"),
]


@pytest.fixture(scope="module")
def birds():
    return KnowledgeGraph.from_names(BIRDS)


def names(graph, paths):
    return [[graph.entities[i] for i in path] for path in paths]


@pytest.mark.parametrize("max_edges", [1, 2, 3, 4])
def test_all_paths_are_found(max_edges):
    rng = np.random.default_rng(0)
    triples = [(str(a), "to", str(b)) for a, b in rng.integers(0, 12, (22, 2)) if a != b]
    graph = KnowledgeGraph.from_names(triples)
    schema_graphs = SchemaGraphs(graph, max_edges, max_paths=1000)
    plain = networkx.Graph(graph.to_networkx())
    for a, b in itertools.permutations(range(len(graph.entities)), 2):
        ends = graph.entities[a], graph.entities[b]
        expected = sorted(map(list, networkx.all_simple_paths(plain, *ends, cutoff=max_edges)))
        paths = schema_graphs.find_paths(a, b)
        assert sorted(names(graph, paths)) == expected
        assert [*map(len, paths)] == sorted(map(len, paths))


def test_the_shortest_paths_and_pairs_are_kept(birds):
    schema_graphs = SchemaGraphs(birds, max_edges=3, max_pairs=2, max_paths=1)
    assert schema_graphs.concepts("A hot air balloon's wings, the bird") == [4, 2, 0]
    letters = SchemaGraphs(birds, split=lambda text: text.split("-"))
    assert letters.concepts("bird-fly") == [0, 1] and not schema_graphs.concepts("bird-fly")
    graph = schema_graphs.schema_graph("The plane and the wing of a bird", "balloons fly")
    paths = [names(birds, paths) for paths in graph.paths.values()]
    assert paths == [[["plane", "fly"]], [["wing", "fly"]]]
    assert (graph.compared, graph.linked) == (3, 3)
    assert names(birds, [graph.entities]) == [["plane", "fly", "wing"]]
    # A concept of both texts is the answer's.
    assert schema_graphs.schema_graph("The bird flies", "It flies").compared == 1


def test_relations_are_named_with_their_direction(birds):
    schema_graphs = SchemaGraphs(birds)
    bird, fly, wing = 0, 1, 2
    assert schema_graphs.relation_name(bird, fly) == "can"
    assert schema_graphs.relation_name(fly, bird) == "-can"
    assert schema_graphs.relation(wing, bird) == birds.relations.index("part_of")
    assert schema_graphs.relation(bird, wing) == 3 + birds.relations.index("part_of")


def test_arrays_hold_nodes_edges_and_paths(birds):
    schema_graphs = SchemaGraphs(birds, max_edges=2, max_pairs=2, max_paths=2)
    texts = [("The bird", "can fly"), ("nothing", "at all"), ("", "fly")]
    graphs = [schema_graphs.schema_graph(*pair) for pair in texts]
    arrays = schema_graphs.arrays(graphs)
    assert arrays["concepts"].tolist() == [[0, 1, 2, 3], [0] * 4, [0] * 4]
    linked = np.pad(1 - np.eye(3), (1, 0))
    np.testing.assert_array_equal(arrays["adjacency"][0], linked)
    assert arrays["pair_nodes"][0].tolist() == [[1, 2], [0, 0]]
    assert arrays["path_nodes"][0].tolist() == [[[1, 2, 0], [1, 3, 2]], [[0] * 3] * 2]
    part, use = (birds.relations.index(name) for name in ("part_of", "used_for"))
    assert arrays["relations"][0, 0].tolist() == [[1, 0], [1 + 3 + part, 1 + use]]
    assert all(not array[1:].any() for array in arrays.values())
    none = SchemaGraphs(birds, max_edges=0)
    graph = none.schema_graph(*texts[0])
    assert graph.paths == {} and graph.compared == 1
    assert none.arrays([graph])["relations"].shape == (1, 4, 2, 1)


def test_entities_get_their_vectors(birds):
    table = concept_vectors(birds, WordVectors(["wing", "other"], [[1, 2], [3, 4]]))
    assert table.tolist() == [[0, 0], [0, 0], [1, 2], [0, 0], [0, 0]]
    with pytest.raises(InputError, match="None of the 1 vectors, such as other, is of an entity"):
        concept_vectors(birds, WordVectors(["other"], [[1, 2]]))
    drawn = concept_vectors(birds, dim=400, seed=1)
    np.testing.assert_array_equal(drawn, concept_vectors(birds, dim=400, seed=1))
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1, atol=0.2)
