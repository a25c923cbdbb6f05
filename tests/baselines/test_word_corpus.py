import pytest

from tfnlp.baselines import read_word_corpus
from tfnlp.utils.errors import InputError


def test_ids_go_from_the_commonest_word_and_texts_end():
    corpus = read_word_corpus(["A film, a plot", "", "film once a"], min_count=2)
    assert corpus.words == ["a", "film"] and list(corpus.counts) == [3, 2]
    assert list(corpus.ids) == [0, 1, 0, 2, 2, 1, 0, 2] and corpus.end == 2
    assert read_word_corpus(["A, b"], "spaces", 1).words == ["A,", "b"]


def test_bad_input():
    with pytest.raises(InputError, match="min_count=9 times among 2 different words"):
        read_word_corpus(["a film"], min_count=9)
    with pytest.raises(InputError, match="No text has two words that occur min_count=2 times"):
        read_word_corpus(["film rare", "film"], min_count=2)
    with pytest.raises(InputError, match="unit"):
        read_word_corpus(["a film"], "letters")
