"""Tokenizers of all kinds: lengths, windows, pieces and decoding."""

import numpy as np
import pytest

import tfnlp.text.tokenizers.tokenizer as tokenizer_module
from tests.text.family_tokenizers import KINDS, TEXTS, tokenizer_of
from tfnlp.text import WordPieceTokenizer, train_tokenizer
from tfnlp.text.tokenizers.tokenizer import text_batches
from tfnlp.utils.errors import InputError

UNIGRAMS = {"bert": "wordpiece", "albert": "unigram", "xlnet": "unigram"}


def test_families_lowercase_as_their_released_models():
    found = {f: tokenizer_of(f).lowercase for f, kind in KINDS.items() if kind != "bpe"}
    keep = dict.fromkeys(("xlnet", "deberta-v2", "xlm-roberta"), False)
    assert found == {"bert": True, "albert": True} | keep
    for family, lowercase in found.items():
        tokens = tokenizer_of(family).tokens
        assert (tokens("The") == tokens("the")) == lowercase
    for lowercase in (True, False):
        given = [train_tokenizer(TEXTS, k, 330, f, lowercase)[0] for f, k in UNIGRAMS.items()]
        assert [t.lowercase for t in given] == [lowercase] * 3


# Long texts


@pytest.mark.parametrize("family", ["bert", "gpt2", "xlnet"])
def test_lengths_without_room_are_named(family):
    tokenizer = tokenizer_of(family)
    one, two = (tokenizer._engine.num_special_tokens_to_add(pair) for pair in (False, True))
    text, words = TEXTS[0], TEXTS[0].split()
    for length in range(-1, two + 4):
        for call, special in (
            (lambda n: tokenizer.encode([text], max_length=n), one),
            (lambda n: tokenizer.encode([text], [text], max_length=n), two),
            (lambda n: tokenizer.encode_words([words], n), one),
            (lambda n: tokenizer.encode_windows([text], [text], n, 5), two),
        ):
            if length > special:
                found = call(length)
                assert max(len(e.token_ids) for e in found) == length
            else:
                with pytest.raises(InputError, match=f"max_length={length} leaves no room"):
                    call(length)
    for stride in (-1, 4):
        with pytest.raises(InputError, match=f"stride={stride} must be at least 0 and below 4"):
            tokenizer.encode_words([words], one + 4, stride)
    for call in (
        lambda: tokenizer.encode([text], max_length=8.5),
        lambda: tokenizer.encode_words([words], 8.5),
        lambda: tokenizer.encode_windows([text], [text], 32, 5, 8.5),
    ):
        with pytest.raises(InputError, match=r"length=8\.5 must be a whole number"):
            call()
    for stride, longest, message in ((-1, 5, "stride=-1"), (5, 0, "max_question_length=0")):
        with pytest.raises(InputError, match=f"{message} must be at least"):
            tokenizer.encode_windows([text], [text], 32, stride, longest)


# Many texts


def test_pieces_give_what_the_whole_gives(monkeypatch):
    def encode_all(tokenizer):
        words = [text.split() for text in TEXTS]
        return [
            list(tokenizer.encode(TEXTS, max_length=9)),
            list(tokenizer.encode(TEXTS, TEXTS[::-1], offsets=True)),
            list(tokenizer.encode_words(words, 8, 2)),
            list(tokenizer.encode_windows(TEXTS, TEXTS[1:] + TEXTS[:1], 16, 2)),
        ]

    for family in ("bert", "roberta", "xlnet"):
        whole = encode_all(tokenizer_of(family))
        with monkeypatch.context() as patch:
            patch.setattr(tokenizer_module, "PIECE_CHARACTERS", 60)
            assert [len(piece) for piece in text_batches(TEXTS)] == [2, 3, 2, 3, 3, 2, 3, 2]
            assert encode_all(tokenizer_of(family)) == whole


# From Python


def test_one_call_gives_a_models_inputs(tokenizer):
    inputs = tokenizer(["a fine film", "dull"], ["!", "not dull"], max_length=7)
    np.testing.assert_array_equal(
        inputs["token_ids"], [[2, 5, 6, 7, 3, 14, 3], [2, 8, 3, 9, 8, 3, 0]]
    )
    segments = [[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1, 0]]
    np.testing.assert_array_equal(inputs["segment_ids"], segments)
    np.testing.assert_array_equal(inputs["padding_mask"], [[1] * 7, [1] * 6 + [0]])
    assert {value.dtype.name for value in inputs.values()} == {"int32"}
    assert tokenizer("a fine film")["token_ids"].tolist() == [[2, 5, 6, 7, 3]]
    assert tokenizer([])["token_ids"].shape == (0, 1)


def test_decoding_omits_special_tokens(tokenizer):
    inputs = tokenizer(["a fine film", "정말 지루하다 !"])
    assert tokenizer.decode(inputs["token_ids"]) == ["a fine film", "정말 지루하다!"]
    assert tokenizer.decode(inputs["token_ids"].tolist()) == ["a fine film", "정말 지루하다!"]
    assert tokenizer.decode(inputs["token_ids"][0]) == tokenizer.decode([5, 6, 7]) == "a fine film"
    assert tokenizer.decode([]) == tokenizer.decode([2, 3, 0]) == ""
    with pytest.raises(OverflowError):
        tokenizer.decode(np.array([[5, -100]]))


def test_a_word_is_unmarked_in_the_windows_that_begin_within_it():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]
    windows = WordPieceTokenizer(tokens).encode_words([["a", "ab", "a", "a"]], 4, stride=1)
    words = [window.words[1:-1] for window in windows]
    assert words == [[0, 1], [1, 1], [None, 2], [2, 3]]
