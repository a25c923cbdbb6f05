"""What holds of every text: ids of `transformers`, offsets, round trips, company."""

import functools
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.text.family_tokenizers import FAMILIES, saved, theirs_of, tokenizer_of

# Any character but lone surrogates, and what is rare among them: special tokens of other
# families, jamo, marks, joined emoji, spaces and controls.
RARE = (
    *("<s>", "##a", "▁", "``", "''", "Ġ", "가", "각", "한", "ㅋㅋ", "e\u0301\u0323", "ﬁ", "İ"),
    *("👨\u200d👩\u200d👧", "\ufeff", "\u00ad", "\x00", "\u2028", "\u3000", " \t\n ", "東京", "ß"),
)
TEXTS = st.lists(
    st.sampled_from(RARE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    max_size=8,
).map("".join)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def theirs(family, tmp_path_factory):
    folder = saved(tokenizer_of(family), tmp_path_factory.mktemp(family), family)
    return theirs_of(folder, family)


def test_ids_are_those_of_transformers(family, theirs):
    @given(TEXTS)
    @example("a quick, 가 \u1112\u1161\u11ab ½")
    def check(text):
        assert tokenizer_of(family).encode([text])[0].token_ids == theirs(text)["input_ids"]

    check()


def test_offsets_lie_in_the_text_in_order(family):
    @given(TEXTS)
    def check(text):
        encoding = tokenizer_of(family).encode([text], offsets=True)[0]
        assert all(0 <= a <= b <= len(text) for a, b in encoding.offsets)
        real = [pair for pair in encoding.offsets if pair != (0, 0)]
        assert real == sorted(real)

    check()


def test_ids_depend_on_no_other_text(family):
    @given(st.lists(TEXTS, max_size=4), st.integers(4, 12))
    def check(texts, max_length):
        encode = functools.partial(tokenizer_of(family).encode, max_length=max_length)
        together = [(e.token_ids, e.segment_ids) for e in encode(texts)]
        assert together == [(e.token_ids, e.segment_ids) for t in texts for e in encode([t])]
        assert all(len(ids) <= max_length for ids, _ in together)

    check()


@given(TEXTS)
def test_bytes_come_back_as_they_were(text):
    tokenizer = tokenizer_of("gpt2")
    assert tokenizer.decode(tokenizer.encode_plain(text)) == text


@given(st.lists(st.sampled_from(["정말", "재미있는", "quick", "fox"]), min_size=1))
def test_known_words_come_back_as_they_were(words):
    text = " ".join(words)
    for family in FAMILIES:
        tokenizer = tokenizer_of(family)
        ids = tokenizer.encode_plain(text)
        assert tokenizer.unknown_token_id not in ids
        assert unicodedata.normalize("NFC", tokenizer.decode(ids)).strip() == text
