"""WordNet as a graph, beside nltk's own reading."""

import shutil

import pytest

from tfnlp.knowledge import find_mentions, read_wordnet
from tfnlp.knowledge.mentions import find_lemma
from tfnlp.knowledge.wordnet import FILES
from tfnlp.utils.errors import InputError

SENTENCE = "The mice ran from hot dogs in the United States of America"


@pytest.fixture(scope="module")
def graph(data_dir):
    return read_wordnet(data_dir / "wordnet")


def names(graph, lemma):
    return [graph.entities[i] for i in graph.lemmas[lemma]]


def test_synsets_and_relations_are_those_of_wordnet(graph):
    """Counts of wnstats(7WN), and of the pointers in the data files."""
    assert len(graph.entities) == 117_659
    counts = dict.fromkeys(graph.relations, 0)
    for relation in graph.triples[:, 1].tolist():
        counts[graph.relations[relation]] += 1
    assert counts["hypernym"] == counts["hyponym"] == 89_089
    assert counts["part_meronym"] == counts["part_holonym"] == 9_097
    assert counts["instance_hypernym"] == 8_577 and counts["cause"] == 220
    dog, canine = (graph.entities.index(name) for name in ("dog.n.01", "canine.n.02"))
    rows = graph.triples[graph.triples[:, 0] == dog].tolist()
    of_dog = {(graph.relations[relation], graph.entities[tail]) for _, relation, tail in rows}
    assert ("hypernym", "canine.n.02") in of_dog and ("part_meronym", "flag.n.07") in of_dog
    assert [canine, graph.relations.index("hyponym"), dog] in graph.triples.tolist()


def test_senses_are_ordered_by_frequency(graph):
    assert names(graph, "dog")[:2] == ["dog.n.01", "frump.n.01"]
    assert names(graph, "run")[0] == "run.v.01" and names(graph, "good")[0] == "good.a.01"
    assert names(graph, "mice") == names(graph, "mouse")[:4]
    assert names(graph, "found") == [
        *("establish.v.01", "establish.v.02", "establish.v.08"),
        *(name for name in names(graph, "find") if ".v." in name),
        *(name for name in names(graph, "found") if ".v." not in name),
    ]


def test_mentions_are_found_in_their_base_forms(graph):
    found = find_mentions(SENTENCE.split(), graph)
    assert [(a, b) for a, b, _ in found] == [(1, 2), (2, 3), (4, 6), (8, 12)]
    names_of_found = [graph.entities[entity] for _, _, entity in found]
    assert names_of_found[:3] == ["mouse.n.01", "run.v.01", "hotdog.n.01"]
    assert names_of_found[3] == "united_states.n.01"
    bases = {"churches": "church", "bakes": "bake", "taller": "tall", "firemen": "fireman"}
    assert {form: find_lemma(form, graph.lemmas) for form in bases} == bases


def test_missing_files_and_broken_ones_are_named(data_dir, tmp_path):
    with pytest.raises(InputError, match=r"has no data\.noun"):
        read_wordnet(tmp_path)
    for name in FILES:
        (tmp_path / name).write_text("  1 WordNet 3.0 Copyright\n")
    (tmp_path / "index.verb").write_text("run v 1 0 1 1 00000001\n")
    with pytest.raises(InputError, match=r"index.verb, line 1: not a lemma with the offsets"):
        read_wordnet(tmp_path)
    shutil.copy(data_dir / "wordnet/data.adv", tmp_path)
    with pytest.raises(InputError, match="not WordNet's database files"):
        read_wordnet(tmp_path)
