"""Texts in windows, and the tags of their characters."""

import unicodedata

import numpy as np
import pytest

from tfnlp.text import WordPieceTokenizer, train_byte_level_bpe, train_unigram
from tfnlp.text.batching.encoding import Encoding
from tfnlp.text.decoding.character_tags import (
    best_character_tags,
    best_characters,
    token_characters,
)
from tfnlp.utils.errors import InputError

NAMES = ["O", "B-PS", "I-PS", "B-LC", "I-LC"]
TEXTS = ["정말 지루하다, 영화 film!", " a\u3000fine  plot ", "강남역에서 만난 x씨"]


def tokenizers_of(tokenizer):
    jamo = sorted(set(unicodedata.normalize("NFD", "정말지루하다영화강남역에서만난씨")))
    jamo += [f"##{letter}" for letter in jamo]
    return {
        "wordpiece": tokenizer,
        "jamo": WordPieceTokenizer([*tokenizer.vocabulary, *jamo]),  # three tokens a syllable
        "bpe": train_byte_level_bpe(TEXTS * 3, 300),
        "unigram": train_unigram(TEXTS * 9, 60, "xlnet"),
    }


def test_windows_over_texts(tokenizer):
    text = "정말 좋다! " * 5
    windows = tokenizer.encode_text_windows([text, "film"], 8, stride=2)
    assert [window.example for window in windows] == [0, 0, 0, 0, 1]
    assert [len(window.token_ids) for window in windows] == [8, 8, 8, 5, 3]
    # Windows of 6 tokens, of which 2 are those of the one before.
    assert windows[1].offsets[1:3] == windows[0].offsets[5:7]
    pieces = ["", "좋다", "!", "정말", "좋다", "!", "정말", ""]
    assert [text[a:b] for a, b in windows[1].offsets] == pieces
    for name, stride in (("stride=6", 6), ("stride=-1", -1)):
        with pytest.raises(InputError, match=f"{name} must be at least 0 and below 6"):
            tokenizer.encode_text_windows(["film"], 8, stride)


def test_tokens_have_no_white_space_before_them(tokenizer):
    for name, each in tokenizers_of(tokenizer).items():
        for text in TEXTS:
            (window,) = each.encode_text_windows([text], 64)
            spans = [text[a:b] for _, a, b in token_characters(window, text)]
            assert not any(span[0].isspace() for span in spans), name
            # Every character that is not white space stands in some token.
            places = {i for _, a, b in token_characters(window, text) for i in range(a, b)}
            due = {i for i, character in enumerate(text) if not character.isspace()}
            assert due <= places, name


def window_of(offsets, example=0):
    return Encoding([0] * len(offsets), [0] * len(offsets), offsets=offsets, example=example)


@pytest.mark.parametrize(
    ("text", "offsets", "found", "expected"),
    [
        # The first character has the token's tag, the others are inside.
        ("김모씨는", [(0, 2), (2, 4)], "B-PS O", "B-PS I-PS O O"),
        ("김모씨는", [(0, 2), (2, 4)], "I-PS B-PS", "I-PS I-PS B-PS I-PS"),
        # White space is inside an entity that goes on, with a token over it or not.
        ("서울 역 앞", [(0, 2), (2, 4), (5, 6)], "B-LC I-LC O", "B-LC I-LC I-LC I-LC O O"),
        ("서울 역 앞", [(0, 2), (3, 4), (5, 6)], "B-LC B-LC I-LC", "B-LC I-LC O B-LC I-LC I-LC"),
        ("서울 역 앞", [(0, 2), (3, 4), (5, 6)], "B-LC I-PS I-PS", "B-LC I-LC O I-PS I-PS I-PS"),
        (" 역 ", [(1, 2)], "B-LC", "O B-LC O"),
        # Of several tokens of one character the first one counts; what has none is outside.
        ("역앞\x00", [(0, 1), (0, 1), (1, 2), (1, 2)], "B-LC O I-LC B-PS", "B-LC I-LC O"),
        # Of a "▁" and the piece after it, which begin together, the piece says how far it goes.
        ("서울에", [(0, 1), (0, 2), (2, 3)], "B-LC B-LC O", "B-LC I-LC O"),
        ("", [], "", ""),
    ],
)
def test_tags_of_characters(text, offsets, found, expected):
    window = window_of([(0, 0), *offsets, (0, 0)])
    tags = ["B-PS", *found.split(), "B-PS"]  # those of the special tokens are left out
    logits = np.eye(len(NAMES))[[NAMES.index(tag) for tag in tags]]
    assert best_character_tags([text], [window], [logits], NAMES) == [expected.split()]


def test_a_character_in_two_windows_has_the_tag_of_the_inner_one():
    places = [(i, i + 1) for i in range(6)]
    windows = [window_of(places[:5]), window_of(places[2:])]
    rows = [[1, 0, 0, 0, 3], [3, 0, 1, 0]]  # wrong at the last of one, at the first of the other
    found = best_character_tags(["가나다라마바"], windows, [np.eye(5)[row] for row in rows], NAMES)
    assert found == [["B-PS", "O", "O", "O", "B-PS", "O"]]


def test_time_is_linear_in_the_length_of_a_text():
    """As many tokens as a book has: with a copy of the rest at each it took a minute."""
    count = 100_000
    window = window_of([(2 * i, 2 * i + 1) for i in range(count)])
    logits = np.zeros((count, len(NAMES)), "float32")
    logits[::2, 1] = 1 + np.arange(count // 2)
    ((*characters,),) = best_characters(["가 " * count], [window], [logits], NAMES)
    assert [tag for tag, _ in characters] == ["B-PS", "O", "O", "O"] * (count // 2)
    assert [logit for _, logit in characters[::4]] == (1.0 + np.arange(count // 2)).tolist()
    assert characters[1][1] == 1.0 and characters[-1][1] == 0.0
