"""WordPiece vocabularies of whole words."""

import pytest

from tfnlp.text import WordPieceTokenizer, load_tokenizer, word_tokenizer
from tfnlp.text.tokenizers.wordpiece import FIRST_TOKENS
from tfnlp.utils.errors import InputError

TEXTS = ["A fine film, a fine plot", "정말 좋은 영화 , 정말", "once"]


def test_a_word_is_one_token_or_unknown(tmp_path):
    tokenizer = word_tokenizer(["film", "don't", "좋은", "plot", "film"], TEXTS)
    # The words of the list, then those that occur twice in the texts.
    further = ["a", "fine", ",", "정말"]
    assert tokenizer.vocabulary == [*FIRST_TOKENS, "film", "좋은", "plot", *further]
    assert tokenizer.tokens("FILM filmmaker 좋은 영화") == ["film", "[UNK]", "좋은", "[UNK]"]
    tokenizer.save(tmp_path)
    assert load_tokenizer(tmp_path).vocabulary == tokenizer.vocabulary
    assert len(word_tokenizer(["film", "plot"], TEXTS, 6).vocabulary) == 6


def test_a_word_with_a_capital_keeps_capitals():
    tokenizer = word_tokenizer(["Paris", "film"], [])
    assert tokenizer.tokens("Paris paris film") == ["Paris", "[UNK]", "film"]


def test_pieces_stay_pieces():
    tokenizer = word_tokenizer(["영화", "##는", "좋"], ["영화는 영화는"])
    assert isinstance(tokenizer, WordPieceTokenizer)
    assert tokenizer.vocabulary == [*FIRST_TOKENS, "영화", "##는", "좋"]
    assert tokenizer.tokens("영화는") == ["영화", "##는"]


def test_words_that_no_text_can_have_are_refused():
    with pytest.raises(InputError, match="None of the 2 words, such as 'new york', is a word as"):
        word_tokenizer(["new york", "don't"], TEXTS)
