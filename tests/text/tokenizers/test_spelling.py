"""Whole words, and their characters."""

import numpy as np
import pytest

from tfnlp.text import SpellingTokenizer, WordPieceTokenizer, load_tokenizer, train_tokenizer
from tfnlp.text.batching.batches import LengthBatches
from tfnlp.text.batching.encoding import narrow
from tfnlp.text.tokenizers.spelling import FIRST_TOKENS, spell
from tfnlp.utils.errors import InputError

TEXTS = ["a fine film, a film", "정말 좋은 영화 , 정말", "a plot"]


def characters(word):
    return [259, *(byte + 1 for byte in word.encode()), 260]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, "words", 100)[0]


def test_words_are_bytes_between_marks():
    table = spell(["a", "영화", "x" * 60, "[CLS]", "[SEP]", "[PAD]"])
    assert table.shape == (6, 50)
    assert table[1, :8].tolist() == characters("영화") and not table[1, 8:].any()
    assert table[2].tolist() == [259, *[ord("x") + 1] * 48, 260]
    assert table[3, :4].tolist() == [259, 257, 260, 0]
    assert table[4, :4].tolist() == [259, 258, 260, 0]
    assert not table[5].any()
    assert narrow(table[None, :2]).shape == (1, 2, 8)


def test_vocabularies_are_the_commonest_words(tokenizer):
    assert tokenizer.tokens_by_id()[:8] == [*FIRST_TOKENS, "a", ",", "film"]
    small, _ = train_tokenizer(TEXTS, "words", 7, "bert")
    assert type(small) is WordPieceTokenizer and small.vocabulary[5:] == ["a", ","]
    # A word is known as a whole or not at all.
    assert small.tokens("a films ab A") == ["a", "[UNK]", "[UNK]", "[UNK]"]


def test_unknown_words_have_their_own_characters(tokenizer):
    rows = tokenizer.encode(["a Movie", "영화들"], ["plot"] * 2)
    inputs = rows.padded([0, 1], 0)
    words = [["[CLS]", "a", "Movie", "[SEP]", "plot", "[SEP]"]]
    words += [["[CLS]", "영화들", "[SEP]", "plot", "[SEP]", "[PAD]"]]
    expected = np.stack([spell(row) for row in words])
    np.testing.assert_array_equal(inputs["characters"], narrow(expected))
    unknown = tokenizer.unknown_token_id
    assert (inputs["token_ids"] == unknown).tolist()[0] == [False, False, True] + [False] * 3
    assert tokenizer("a film")["characters"].shape == (1, 4, 6)
    assert (
        rows.fingerprint() != tokenizer.encode(["a Other", "영화들"], ["plot"] * 2).fingerprint()
    )


def test_words_of_sentences_and_windows(tokenizer):
    (row,) = tokenizer.encode_words([["@user", "영화", "Zz"]], 16)
    inputs = tokenizer.encode_words([["@user", "영화", "Zz"]], 16).padded([0], 0)
    assert row.words == [None, 0, 0, 1, 2, None]
    due = spell(["[CLS]", "@", "user", "영화", "Zz", "[SEP]"])
    np.testing.assert_array_equal(inputs["characters"], narrow(due[None]))
    windows = tokenizer.encode_text_windows(["new film new"], 4)
    due = spell(["[CLS]", "new", "film", "[SEP]"])
    np.testing.assert_array_equal(windows.padded([0], 0)["characters"], narrow(due[None]))


def test_batches_have_characters_to_a_fixed_length_too(tokenizer):
    rows = tokenizer.encode(TEXTS)
    batches = LengthBatches(rows, 3, [0, 1, 0], fixed_length=9)
    (inputs, _), (specs, _) = next(batches.epoch()), batches.signature()
    assert inputs["characters"].shape[:2] == (3, 9) and not inputs["characters"][:, -1].any()
    assert specs["characters"].shape.as_list() == [None] * 3
    for inputs, _ in batches.dataset():
        assert inputs["characters"].dtype == "int32"


def test_folders_give_the_tokenizer_back(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is SpellingTokenizer
    text = "Some film, 정말"
    for name, value in tokenizer(text).items():
        np.testing.assert_array_equal(loaded(text)[name], value)
    with pytest.raises(InputError, match="The words begin with a, b"):
        SpellingTokenizer(["a", "b"])
