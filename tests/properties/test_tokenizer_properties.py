"""What holds of every text: ids of `transformers`, offsets, round trips, company."""

import functools
import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.text.family_tokenizers import FAMILIES, saved, theirs_of, tokenizer_of
from tests.text.family_tokenizers import TEXTS as LINES
from tfnlp.text import load_tokenizer
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.unigram import MODEL_FILES
from tfnlp.utils.errors import InputError

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


# User-defined pieces: some overlap, and some would be changed by what the families normalise.
SYMBOLS = ["<ent>", "[X]", "한국", "½x", "ＡＢ", "fox", "oxju", "the", "ab", "abc", "bcd"]


def write_sentencepiece(folder, family, symbols):
    """Train a SentencePiece model with user-defined pieces in a folder for a family; return it."""
    import sentencepiece

    tokens, path = SPECIAL_TOKENS[family].tokens, folder / MODEL_FILES[family]
    # Their ids in released files, where they matter.
    ids = {"albert": (1, 2, 3, 0), "xlnet": (0, 1, 2, 5), "deberta-v2": (3, -1, -1, 0)}
    ids |= {"xlm-roberta": (0, 1, 2, -1), "marian": (1, -1, 0, 2)}
    names = ("unk_id", "bos_id", "eos_id", "pad_id")
    learned = {"unk_token", "bos_token", "eos_token", "pad_token"}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for line in LINES if line]),
        model_prefix=str(folder / "model"),
        vocab_size=150,
        hard_vocab_limit=False,
        control_symbols=[token for role, token in tokens.items() if role not in learned],
        user_defined_symbols=symbols,
        unk_piece=tokens["unk_token"],
        pad_piece=tokens["pad_token"],
        minloglevel=2,
        **dict(zip(names, ids[family], strict=True)),
    )
    (folder / "model.model").rename(path)
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    if family == "marian":
        (folder / "target.spm").write_bytes(path.read_bytes())
        pieces = {model.id_to_piece(i): i for i in range(model.get_piece_size())}
        (folder / "vocab.json").write_text(json.dumps(pieces))
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    return model


@pytest.mark.parametrize("family", MODEL_FILES)
def test_user_defined_pieces_are_kept_whole_as_in_sentencepiece(family, tmp_path):
    pytest.importorskip("sentencepiece")
    model = write_sentencepiece(tmp_path, family, SYMBOLS)
    tokenizer = load_tokenizer(tmp_path)
    tokenizer.save(tmp_path / "again")
    again = load_tokenizer(tmp_path / "again")

    @given(st.lists(st.sampled_from([*SYMBOLS, *"abcdefox th"]), max_size=12).map("".join))
    def check(text):
        pieces = model.encode(text, out_type=str)
        assert tokenizer.tokens(text) == again.tokens(text) == pieces

    check()


def test_white_space_as_a_user_defined_piece_is_refused(tmp_path):
    pytest.importorskip("sentencepiece")
    write_sentencepiece(tmp_path, "albert", ["\n"])
    with pytest.raises(InputError, match="user-defined"):
        load_tokenizer(tmp_path)
