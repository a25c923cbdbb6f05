"""Entities of tags."""

import numpy as np
import pytest
from seqeval.metrics.sequence_labeling import get_entities

from tfnlp.text.batching.encoding import Encoding
from tfnlp.text.decoding.tags import TaggedText, best_tags


def tagged(tags, scores=None):
    words = [f"w{i}" for i in range(len(tags))]
    starts = np.cumsum([0] + [len(word) + 1 for word in words])
    spans = [(int(a), int(a) + len(w)) for a, w in zip(starts, words, strict=False)]
    return TaggedText(" ".join(words), spans, tags, scores or [0.5] * len(tags))


@pytest.mark.parametrize("places", ["BI", "BIES", "BILU"])
def test_entities_are_seqevals(places):
    rng = np.random.default_rng(0)
    names = ["O", *(f"{place}-{kind}" for place in places for kind in ("x", "y-z"))]
    others = {"L": "E", "U": "S"}
    for _ in range(300):
        tags = [names[i] for i in rng.integers(0, len(names), 8)]
        text = tagged(tags)
        expected = get_entities([others.get(tag[0], tag[0]) + tag[1:] for tag in tags])
        found = [(e.label, e.start, e.end) for e in text.entities]
        assert found == [(k, text.spans[a][0], text.spans[b][1]) for k, a, b in expected]


def test_an_entity_has_its_text_and_the_mean_of_its_scores():
    text = TaggedText("in New  York.", [(0, 2), (3, 6), (8, 12), (12, 13)], list("OBIO"), [])
    text = TaggedText(text.text, text.spans, ["O", "B-city", "I-city", "O"], [1, 0.9, 0.5, 1])
    (city,) = text.entities
    assert (city.text, city.label, city.start, city.end) == ("New  York", "city", 3, 12)
    assert city.score == pytest.approx(0.7)
    assert text.words == ["in", "New", "York", "."]
    assert [e.label for e in tagged(["B", "O"]).entities] == ["_"]
    assert tagged([]).entities == []


def test_a_word_in_two_windows_has_the_tag_of_more_context():
    names = ["first", "second"]
    windows = [
        Encoding([0] * 4, [0] * 4, words=words, example=0)
        for words in ([0, 1, 2, 3], [2, 3, 4, 5])
    ]
    logits = [np.tile(row, (4, 1)) for row in np.eye(2)]
    (tags,) = best_tags([["w"] * 6], windows, logits, names)
    assert tags == ["first"] * 3 + ["second"] * 3
