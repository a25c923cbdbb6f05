"""Texts that are no strings, or hold halves of surrogate pairs."""

import pytest

from tests.text.family_tokenizers import FAMILIES, TEXTS, tokenizer_of
from tfnlp.text import train_byte_level_bpe, train_unigram, train_wordpiece
from tfnlp.text.reading.text_arguments import as_sentences, as_texts
from tfnlp.utils.errors import InputError


@pytest.mark.parametrize("family", FAMILIES)
def test_a_string_is_one_text(family):
    t = tokenizer_of(family)
    for given, listed in (
        (t.encode("a fox"), t.encode(["a fox"])),
        (t.encode("a fox", "a dog"), t.encode(["a fox"], ["a dog"])),
        (t.encode_words("a fox", 12), t.encode_words([["a", "fox"]], 12)),
        (t.encode_words(["a fox"], 12), t.encode_words([["a", "fox"]], 12)),
        (t.encode_windows("a", "fox", 12, 2), t.encode_windows(["a"], ["fox"], 12, 2)),
    ):
        assert len(given) == 1 and given[0] == listed[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_lone_surrogates_are_read_as_one_unknown_character_each(family):
    t = tokenizer_of(family)
    broken, mended = "fox \ud800dog\udfff .", "fox \ufffddog\ufffd ."
    for encode in (
        lambda text: t.encode([text], ["a"], offsets=True),
        lambda text: t.encode(["a"], [text]),
        lambda text: t.encode_words([text.split()], 32),
        lambda text: t.encode_windows([text], [text], 32, 4),
    ):
        assert list(encode(broken)) == list(encode(mended))
    (encoding,) = t.encode([broken], offsets=True)
    places = zip(encoding.offsets, encoding.sources, strict=True)
    assert [end for (_, end), source in places if source == 0][-1] == len(broken)
    assert t.tokens(broken) == t.tokens(mended)


def test_pairs_of_surrogates_are_not_joined_and_other_texts_are_left_alone():
    composed, decomposed = "\ud55c", "\u1112\u1161\u11ab"  # NFC and NFD of one syllable
    found = as_texts(["\ud83d\ude00", composed, decomposed])
    assert found == ["\ufffd\ufffd", composed, decomposed]
    assert as_sentences(["a b", ["c", "\udfff"]]) == [["a", "b"], ["c", "\ufffd"]]


def test_learning_takes_lone_surrogates():
    for train in (train_wordpiece, train_byte_level_bpe, train_unigram):
        found, expected = (train([*TEXTS, f"fox {c} dog"] * 2, 330) for c in ("\ud800", "\ufffd"))
        assert found.tokens("fox \ufffd dog") == expected.tokens("fox \ufffd dog")
        assert found.vocabulary_size == expected.vocabulary_size


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.encode(["a", None]), r"texts\[1\] is None, not a string"),
        (lambda t: t.encode(b"ab"), r"texts\[0\] is 97, not a string"),
        (lambda t: t(["a"], [3]), r"pairs\[0\] is 3, not a string"),
        (lambda t: t.encode(["a"], ["b", "c"]), "pairs holds 2 texts and texts 1"),
        (lambda t: t.encode_words([["a"], ["b", 2.0]], 8), r"sentences\[1\]\[1\] is 2.0"),
        (lambda t: t.encode_windows([None], ["a"], 8, 1), r"questions\[0\] is None"),
        (lambda t: t.encode_windows(["a"], [None], 8, 1), r"contexts\[0\] is None"),
        (lambda t: train_wordpiece([None], 50), r"texts\[0\] is None"),
    ],
)
def test_values_other_than_strings_are_named(call, message, tokenizer):
    with pytest.raises(InputError, match=message):
        call(tokenizer)
