"""The corpus of the tests."""

from tests.grammar_corpus import make_reviews


def test_grammar_corpus_is_balanced_and_without_repeats():
    reviews = make_reviews(2000)
    assert len({text for text, _ in reviews}) == 2000
    assert 900 < sum(label == "positive" for _, label in reviews) < 1100
    korean = sum(any("가" <= c <= "힣" for c in text) for text, _ in reviews)
    assert korean == 1000
    assert reviews == make_reviews(2000)
