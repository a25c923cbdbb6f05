"""Files of generated texts and translations, which a killed run goes on with, and scores."""

import json
from types import SimpleNamespace

import pytest

from tfnlp.generation.continuations import Generated
from tfnlp.generation.generation_settings import Constraints, Greedy, SearchSettings
from tfnlp.generation.output_files import score_translations, translate_file, write_generated
from tfnlp.tasks import ParallelTexts

SOURCES = ["one two", "a\ttab", "three", "four", "five"]


ROWS = [[5] * len(source) for source in SOURCES]


class Shouting:
    """Translates into capitals and, second, as it is, the last first; dies before a number."""

    settings = SearchSettings(Greedy(), Constraints(), steps=7, ends=(0,), pad=0)

    def __init__(self, dies_at=None):
        self.read, self.dies_at = [], dies_at

    def each_translation(self, rows):
        for number in reversed([number for number, ids in enumerate(rows) if ids]):
            if len(self.read) == self.dies_at:
                raise KeyboardInterrupt
            self.read.append(number)
            yield number, self([SOURCES[number]])[0]

    def __call__(self, sources):
        return [
            [
                SimpleNamespace(text=s.upper(), score=-0.5, ended=True),
                SimpleNamespace(text=s, score=-1.25, ended=s != "four"),
            ]
            for s in sources
        ]


def test_a_killed_translation_resumes(tmp_path, caplog):
    whole, broken = tmp_path / "whole.tsv", tmp_path / "broken.tsv"
    translate_file(Shouting(), SOURCES, ROWS, whole, "x")
    assert whole.read_text().splitlines()[:4] == [
        "source\ttranslation\tscore",
        "one two\tONE TWO\t-0.500000",
        "one two\tone two\t-1.250000",
        "a tab\tA TAB\t-0.500000",
    ]
    assert "1 of the translations were cut at 7 tokens." in caplog.text
    with pytest.raises(KeyboardInterrupt):
        translate_file(Shouting(dies_at=3), SOURCES, ROWS, broken, "x")
    part = tmp_path / "broken.tsv.part"
    assert len(part.read_text().splitlines()) == 4  # each is written once it is done
    part.write_text(part.read_text() + '[1, [["cut sh')  # as a kill in a line leaves it
    with pytest.raises(KeyboardInterrupt):  # once more
        translate_file(Shouting(dies_at=1), SOURCES, ROWS, broken, "x")
    last = Shouting()
    translate_file(last, SOURCES, ROWS, broken, "x")
    assert last.read == [0]
    assert broken.read_text() == whole.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.tsv", "whole.tsv"]


def test_a_part_file_of_other_inputs_is_reset(tmp_path):
    path = tmp_path / "x.tsv"
    with pytest.raises(KeyboardInterrupt):
        translate_file(Shouting(dies_at=1), SOURCES, ROWS, path, "x")
    again = Shouting()
    translate_file(again, SOURCES, ROWS, path, "y")
    assert again.read == [4, 3, 2, 1, 0]


def test_scores_are_those_of_sacrebleu_and_the_texts_are_written(tmp_path):
    pytest.importorskip("sacrebleu")
    texts = ParallelTexts(["the cat sat on the mat", "no"], ["THE CAT SAT ON THE MAT", "yes"])
    path = tmp_path / "found.tsv"
    found = score_translations(Shouting(), texts, path)
    # 6 of 7 words, 5 of 5 pairs, 4 of 4 triples, 3 of 3 fours: the geometric mean of the four.
    assert found["bleu"] == pytest.approx(100 * (6 / 7) ** 0.25, rel=1e-6)
    assert found["bleu_signature"].startswith("nrefs:1|case:mixed")
    assert set(found) == {"bleu", "bleu_signature", "chrf", "chrf_signature"}
    assert path.read_text().splitlines()[2] == "no\tyes\tNO"
    json.dumps(found)


def test_each_text_is_written_on_a_line(tmp_path):
    texts = [Generated(" is\n\tgood.", (5, 6), True, -0.25), Generated(" is", (5,), False, None)]
    write_generated(tmp_path / "written.tsv", ["it"], [texts])
    header, *rows = (tmp_path / "written.tsv").read_text().splitlines()
    assert header == "prompt\ttext\tended\tscore"
    assert rows == ["it\t is  good.\tyes\t-0.250000", "it\t is\tno\t"]
    write_generated(tmp_path / "written.jsonl", ["it"], [texts])
    first, second = (tmp_path / "written.jsonl").read_text().splitlines()
    assert json.loads(first) == {
        "prompt": "it",
        "text": " is\n\tgood.",
        "token_ids": [5, 6],
        "ended": True,
        "score": -0.25,
    }
    assert json.loads(second)["score"] is None
