"""ConceptNet's assertions file, by a sample in its format."""

import gzip

import pytest

from tfnlp.knowledge import read_conceptnet
from tfnlp.utils.errors import InputError

DETAILS = '{"dataset": "/d/wiktionary/en", "license": "cc:by-sa/4.0", "weight": 1.0}'
SAMPLE = [
    ("/r/IsA", "/c/en/hot_dog/n", "/c/en/food"),
    ("/r/IsA", "/c/en/hot_dog", "/c/en/food/n/wn/food"),
    ("/r/Synonym", "/c/en/food/n", "/c/ko/음식"),
    ("/r/IsA", "/c/ko/비빔밥/n", "/c/ko/음식/n"),
    ("/r/ExternalURL", "/c/en/food", "http://dbpedia.org/resource/Food"),
    ("/r/dbpedia/genus", "/c/en/cat", "/c/en/felis"),
]


def write(path, assertions):
    lines = ("\t".join(("/a/x", *columns, DETAILS)) + "\n" for columns in assertions)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def test_words_of_the_language_are_entities(tmp_path):
    path = write(tmp_path / "assertions.csv.gz", SAMPLE)
    graph = read_conceptnet(path)
    assert graph.entities == ["hot_dog", "food", "cat", "felis"]
    assert graph.relations == ["IsA", "dbpedia/genus"]
    assert graph.triples.tolist() == [[0, 0, 1], [2, 1, 3]]
    assert graph.lemmas["hot dog"] == [0]
    korean = read_conceptnet(path, "ko")
    assert korean.entities == ["비빔밥", "음식"] and korean.triples.tolist() == [[0, 0, 1]]


def test_malformed_lines_are_named(tmp_path, capsys):
    path = write(tmp_path / "assertions.gz", SAMPLE)
    with pytest.raises(InputError, match="no assertion between two words of language=fr"):
        read_conceptnet(path, "fr")
    broken = tmp_path / "broken.csv"
    broken.write_text("\t".join(("/a/x", *SAMPLE[0], DETAILS)) + "\n/c/en/dog\tIsA\t/c/en/pet\n")
    with pytest.raises(InputError, match=r"broken.csv, line 2: expected five columns"):
        read_conceptnet(broken)
    assert capsys.readouterr().err.endswith("\n")  # the bar, so that the message has its own line
    with pytest.raises(InputError, match="line 1"):
        read_conceptnet(write(tmp_path / "a.gz", [("IsA", *SAMPLE[0][1:])]))
