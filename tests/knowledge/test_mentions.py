"""Mentions of entities in a text."""

import pytest

from tfnlp.knowledge import KnowledgeGraph, find_mentions
from tfnlp.knowledge.mentions import ENDINGS

GRAPH = KnowledgeGraph.from_names(
    [("hot_dog", "is_a", "dog"), ("church", "near", "united_states"), ("It", "is_a", "bake")]
)


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("The hot dog", [(1, 3, "hot_dog")]),
        ("Hot dogs bark", [(0, 2, "hot_dog")]),
        ("hot , dog", [(2, 3, "dog")]),
        ("churches of the United States", [(0, 1, "church"), (3, 5, "united_states")]),
        ("it baked", [(1, 2, "bake")]),
        ("dog dog", [(0, 1, "dog"), (1, 2, "dog")]),
        ("the unknown", []),
        ("", []),
    ],
)
def test_the_longest_lemmas_are_found(text, mentions):
    found = find_mentions(text.split(), GRAPH)
    assert [(start, stop, GRAPH.entities[entity]) for start, stop, entity in found] == mentions


def test_the_first_sense_is_taken_and_stop_words_are_the_callers():
    graph = KnowledgeGraph(["a", "b"], [], None, {"it": [1, 0]})
    assert find_mentions(["It"], graph, stop_words=frozenset()) == [(0, 1, 1)]


def test_endings_are_those_of_nltk():
    rules = pytest.importorskip("nltk.corpus.reader.wordnet").WordNetCorpusReader
    parts = rules.MORPHOLOGICAL_SUBSTITUTIONS
    assert list(dict.fromkeys([*parts["n"], *parts["v"], *parts["a"]])) == list(ENDINGS)
