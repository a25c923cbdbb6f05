"""Graphs of named triples."""

from tfnlp.knowledge import KnowledgeGraph

TRIPLES = [("cat", "is_a", "animal"), ("Hot_dog", "is_a", "food"), ("cat", "is_a", "animal")]


def test_names_are_numbered_in_the_order_of_the_triples():
    graph = KnowledgeGraph.from_names(TRIPLES)
    assert graph.entities == ["cat", "animal", "Hot_dog", "food"]
    assert graph.relations == ["is_a"]
    assert graph.triples.tolist() == [[0, 0, 1], [2, 0, 3]] and graph.triples.dtype == "int32"
    assert graph.lemmas == {"cat": [0], "animal": [1], "hot dog": [2], "food": [3]}
    assert graph.longest_lemma == 2


def test_networkx_finds_the_paths():
    graph = KnowledgeGraph.from_names([*TRIPLES, ("food", "part_of", "animal")]).to_networkx()
    assert next(iter(graph.edges(keys=True))) == ("cat", "animal", "is_a")
    assert graph.number_of_edges() == 3
    assert list(graph.predecessors("animal")) == ["cat", "food"]
