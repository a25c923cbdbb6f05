"""Pieces of a text that is written, and stop strings."""

import types

import pytest

from tests.text.family_tokenizers import tokenizer_of
from tfnlp.generation import Constraints, Greedy
from tfnlp.generation.continuations import generated
from tfnlp.generation.generation_settings import SearchSettings
from tfnlp.generation.text_stream import TextStream

TEXT = "the 영화 fox 😀 . 끝 : the dog"


def streamed(tokenizer, ids, stop_strings=(), ends=()):
    """The text by pieces, whether a stop string ended it, the pieces, and the `Generated`."""
    settings = SearchSettings(Greedy(), Constraints(), len(ids), ends, 0, stop_strings)
    pieces = []
    stream = TextStream(tokenizer.decode, settings, lambda token, text: pieces.append(text))
    stopped = False
    for length in range(1, len(ids) + 1):
        stopped = stream(ids[:length], length == len(ids))
        if stopped:
            break
    return stopped, pieces, generated(ids, None, settings, tokenizer.decode)


@pytest.mark.parametrize("family", ["roberta", "bert", "xlm-roberta"])
def test_pieces_are_whole_characters_and_together_the_text(family):
    tokenizer = tokenizer_of(family)
    ids = tokenizer.encode_plain(TEXT)
    stopped, pieces, text = streamed(tokenizer, ids)
    assert not stopped and len(pieces) == len(ids)
    assert "".join(pieces) == text.text == tokenizer.decode(ids)
    assert not any("\ufffd" in piece for piece in pieces)
    if family == "roberta":  # 영 and 화 are several tokens each
        assert "" in pieces
        # The limit may fall within a character, whose part then is the end of the text.
        cut = next(n for n in range(len(ids)) if tokenizer.decode(ids[:n]).endswith("\ufffd"))
        _, pieces, text = streamed(tokenizer, ids[:cut])
        assert "".join(pieces) == text.text == tokenizer.decode(ids[:cut])
        assert text.text.endswith("\ufffd") and not any("\ufffd" in p for p in pieces[:-1])


@pytest.mark.parametrize(
    "stop", ["화 f", "x 😀", " .", "끝 : t", "영", "the 영화 fox 😀 . 끝 : the dog"]
)
def test_a_stop_string_across_tokens_ends_a_text_before_it(stop):
    tokenizer = tokenizer_of("roberta")
    ids = tokenizer.encode_plain(TEXT)
    before = TEXT[: TEXT.index(stop)]
    # Its end may look like another stop string until the text has ended.
    stopped, pieces, text = streamed(tokenizer, ids, [stop, f"{before[-2:]}~"])
    assert stopped and text.ended
    assert "".join(pieces) == text.text == before
    # The ids are the fewest whose text holds the stop string.
    assert len(text.token_ids) == len(pieces)
    assert stop in tokenizer.decode(text.token_ids)
    assert stop not in tokenizer.decode(text.token_ids[:-1])


def test_a_text_ends_before_the_first_of_several_stop_strings():
    words = types.SimpleNamespace(decode=lambda ids: "the fox"[: 4 * len(ids)])
    stopped, pieces, text = streamed(words, [1, 2], ["e", "h", "x"])
    assert stopped and pieces == ["t"] and text.text == "t" and text.token_ids == (1,)


def test_what_looks_like_a_stop_string_is_shown_once_it_is_none():
    tokenizer = tokenizer_of("roberta")
    ids = tokenizer.encode_plain(TEXT)
    stopped, pieces, text = streamed(tokenizer, ids, ["영화 fog", "the dogs", "\ufffd"])
    assert not stopped and not text.ended
    assert "".join(pieces) == text.text == TEXT


def test_an_end_token_is_no_text():
    tokenizer = tokenizer_of("roberta")
    ids = tokenizer.encode_plain("the fox .")
    _, pieces, text = streamed(tokenizer, ids, ends=(5, ids[-1]))
    assert len(pieces) == len(ids) and pieces[-1] == ""
    assert "".join(pieces) == text.text == "the fox" and text.ended
    assert text.token_ids == tuple(ids[:-1])
