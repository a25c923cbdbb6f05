"""Word vectors: those of files, their neighbours, and the words that are one token."""

import pytest

from distill.learning.word_neighbours import WordNeighbours, pieces_within, whole_words
from tests.grammar_corpus import make_reviews
from tfnlp.text.batching.encoding import Encoding
from tfnlp.text.tokenizers.tokenizer_loading import train_tokenizer
from tfnlp.utils.errors import InputError


def test_whole_words_of_each_kind_of_tokenizer(tokenizer):
    found = whole_words(tokenizer)
    english = ["a", "fine", "film", "dull", "not", "the", "is"]
    assert [*found.values()] == [*english, "영화", "정말", "좋다", "지루", "plot", "un", "x"]
    assert all(tokenizer.vocabulary[i] == word for i, word in found.items())
    texts = [text for text, _ in make_reviews(300)]
    for kind, expected in (("bpe", {"script", "말한다"}), ("unigram", {"clever", "훌륭하다"})):
        learned, _ = train_tokenizer(texts, kind, 400)
        words = set(whole_words(learned).values())
        assert expected <= words
        assert {len(learned.encode_words([[w]], 64)[0].token_ids) for w in words} == {3}


def test_vectors_of_files_and_their_neighbours(tmp_path):
    path = tmp_path / "vectors.txt"
    rows = "the 1 0 0\ngood 0 1 0\ngreat 0 0.9 0.1\nnice 0 2 1\n, 1 1 1\nfine 0 1 0.1\n"
    for header in ("", "6 3\n"):
        path.write_text(header + rows)
        vectors = WordNeighbours.from_file(path)
        assert vectors.vectors.words == ["the", "good", "great", "nice", "fine"]
        assert vectors.nearest("good", 3) == ["fine", "great", "nice"]
        assert vectors.nearest("Good", 2) == ["fine", "great"]
        assert vectors.nearest("bad", 2) == []
    for bad, line in (("the 1 0 0\ngood 1 0\n", 2), ("the 1 0\na b c\n", 2), ("the 1 nan\n", 1)):
        path.write_text(bad)
        with pytest.raises(InputError, match=rf"vectors\.txt, line {line}: expected a word and"):
            WordNeighbours.from_file(path)
    path.write_text(", 1 2\n")
    with pytest.raises(InputError, match="holds no vector of a word of letters"):
        WordNeighbours.from_file(path)


def test_pieces_of_a_word_may_hold_the_space_before_it():
    # "the films": byte-level BPE's second token begins at the space.
    encoding = Encoding([0, 1, 2], [0, 0, 0], offsets=[(0, 3), (3, 8), (8, 9)])
    assert pieces_within(encoding, 4, 9) == [1, 2]
    assert pieces_within(encoding, 4, 8) == [1]
    assert pieces_within(encoding, 5, 9) == []
