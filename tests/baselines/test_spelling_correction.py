"""Spelling by a noisy channel and the words around."""

import pytest

from tfnlp.baselines import NgramModel, NgramSettings, SpellingCorrector, SpellingSettings
from tfnlp.baselines.spelling_correction import edit_distance, letters_of

TEXTS = ["i read a book about it", "they read a book", "my red car is here", "the red car"] * 3


def corrector(texts=TEXTS, **settings):
    model = NgramModel(map(str.split, texts), NgramSettings(3))
    return SpellingCorrector(model, SpellingSettings(**settings))


@pytest.mark.parametrize(
    "first, second, edits",
    [("", "", 0), ("", "ab", 2), ("form", "from", 1), ("sonng", "son", 2), ("ca", "abc", 3)],
)
def test_edits(first, second, edits):
    assert edit_distance(first, second) == edit_distance(second, first) == edits


def test_letters_of_hangul_are_jamo():
    assert edit_distance(letters_of("영하관"), letters_of("영화관")) == 1
    assert edit_distance(letters_of("값이"), letters_of("갑시")) == 2


@pytest.mark.parametrize("most", [0, 1, 2])
def test_candidates_are_all_words_nearby(most):
    found = corrector(max_edits=most).candidates("reda")
    words = {word for text in TEXTS for word in text.split()}
    expected = {word: edit_distance("reda", word) for word in words}
    assert found == {word: edits for word, edits in expected.items() if edits <= most}
    assert {0: set(), 1: {"read", "red"}}.get(most, found.keys()) == found.keys()


def test_words_around_decide():
    bold = {"max_edits": 1, "edit_probability": 0.1}
    for written, expected, settings in (
        ("they raed a book", "they read a book", {}),
        ("the reda car", "the red car", {}),
        # A word of the vocabulary stays, unless the others make it unlikely by far.
        ("i red a book", "i red a book", {}),
        ("i red a book", "i read a book", bold),
        ("zzzzzz car", "zzzzzz car", {}),
    ):
        assert " ".join(corrector(**settings).correct(written.split())) == expected


def test_korean():
    texts = ["어제 영화관 에 갔다", "좋은 영화 를 봤다", "영어 를 배웠다"] * 3
    assert corrector(texts).correct(["어제", "영하관", "에", "갔다"])[1] == "영화관"
