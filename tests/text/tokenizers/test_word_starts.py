"""Where words begin in ids, against the white space of the text itself."""

import itertools

import numpy as np
import pytest

from tests.text.test_dropped_characters import CORPUS, trained
from tfnlp.objectives import Masking
from tfnlp.text.tokenizers.word_starts import WordStarts

WHITE = [chr(i) for i in range(0x3001) if chr(i).isspace()]
# A few of these are in the texts that vocabularies are learned from, so that they are tokens.
LEARNED = ["\n".join(CORPUS), "a film\u00a0by\u3000the\tgood  river", *CORPUS]
BYTES = ("byte-level BPE", "deberta", "characters")
KINDS = (*BYTES, "wordpiece, accents", "albert", "xlnet", "deberta-v2")
TEXTS = [
    *(f"river{space}film" for space in WHITE),
    "Paris\r\n  \n\tgood\u00a0\u3000 film\n",
    " \n river",
    "서울\u2028한국\u3000사람",
    "a£b\u00c2\u00a3 é",  # bytes that white space has too
]


@pytest.mark.parametrize("kind", KINDS)
def test_words_begin_at_white_space(kind):
    tokenizer = trained(kind, LEARNED)
    masking = Masking.from_tokenizer(tokenizer, whole_words=True)
    for text in TEXTS:
        if kind == "wordpiece, accents":  # BERT drops some as control characters
            text = "".join(c for c in text if c not in "\x0b\x0c\x1c\x1d\x1e\x1f\x85")
        (encoding,) = tokenizer.encode([text], offsets=True)
        ids = np.array([encoding.token_ids])
        words, _ = masking._words(ids, ~np.isin(ids, tokenizer.special_token_ids))
        found = []  # the first character of each token that has one, and its word
        for i, word, (a, b) in zip(ids[0], words[0], encoding.offsets, strict=True):
            if i not in tokenizer.special_token_ids and text[a:b].strip():
                found.append((b - len(text[a:b].lstrip()), word))
        for (a, word), (b, later) in itertools.pairwise(found):
            parted = any(c.isspace() for c in text[a:b])
            # The others part words at punctuation and at unknown tokens too.
            if parted or kind in BYTES:
                assert (word != later) == parted, (text, found)


def test_white_space_and_what_follows_are_one_word():
    names = [b"a", b" ", b"\n", b"\n b", b"\xc2", b"\xa0", b"\xa3", b"\xe3\x80", b"\x80c", b""]
    starts = WordStarts(names)
    rows = [
        ([0, 1, 2, 0, 0, 2, 3], [0, 1, 0, 0, 0, 1, 0]),
        ([0, 4, 5, 0, 4, 6, 0], [0, 1, 0, 0, 0, 0, 0]),
        ([0, 7, 8, 0, 9, 2, 0], [0, 1, 0, 0, 0, 1, 0]),
        ([1, 0, 0, 1, 9, 9, 9], [1, 0, 0, 1, 0, 0, 0]),
        ([0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]),
    ]
    ids, expected = zip(*rows, strict=True)
    np.testing.assert_array_equal(starts(np.array(ids)), np.array(expected, bool))
    # A row knows nothing of the one before it, which ends in white space here.
    np.testing.assert_array_equal(starts(np.array([[0, 1], [1, 0]])), [[0, 1], [1, 0]])
