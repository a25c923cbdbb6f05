"""What all tokenizers do with texts of any sort: strange, long, many; and with their files."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tfnlp.text.tokenizer as tokenizer_module
from tfnlp.text import (
    Encoding,
    Encodings,
    LengthBatches,
    load_tokenizer,
    train_byte_level_bpe,
    train_tokenizer,
    train_unigram,
    train_wordpiece,
)
from tfnlp.text.text_arguments import as_sentences, as_texts
from tfnlp.text.tokenizer import _pieces
from tfnlp.utils.errors import InputError

TEXTS = [
    "The quick brown fox jumps over the lazy dog .",
    "정말 재미있는 영화였다 ! 다시 보고 싶다",
    "a naïve café , don't you think ?  two  spaces",
    "",
] * 5
FAMILIES = ("bert", "gpt2", "roberta", "deberta", "albert", "xlnet", "deberta-v2")
UNIGRAMS = {"bert": "wordpiece", "albert": "unigram", "xlnet": "unigram"}
KINDS = {"bert": "wordpiece"} | dict.fromkeys(("gpt2", "roberta", "deberta"), "bpe")


@pytest.fixture(scope="module")
def tokenizers():
    """A tokenizer of each family."""
    return {
        family: train_tokenizer(TEXTS, KINDS.get(family, "unigram"), 330, family)[0]
        for family in FAMILIES
    }


def test_families_lowercase_as_their_released_models(tokenizers):
    found = {f: t.lowercase for f, t in tokenizers.items() if KINDS.get(f) != "bpe"}
    assert found == {"bert": True, "albert": True, "xlnet": False, "deberta-v2": False}
    cased = [f for f in found if tokenizers[f].tokens("The") != tokenizers[f].tokens("the")]
    assert cased == ["xlnet", "deberta-v2"]
    for lowercase in (True, False):
        given = [train_tokenizer(TEXTS, k, 330, f, lowercase)[0] for f, k in UNIGRAMS.items()]
        assert [t.lowercase for t in given] == [lowercase] * 3


# Strange texts


@pytest.mark.parametrize("family", FAMILIES)
def test_a_string_is_one_text(family, tokenizers):
    t = tokenizers[family]
    for given, listed in (
        (t.encode("a fox"), t.encode(["a fox"])),
        (t.encode("a fox", "a dog"), t.encode(["a fox"], ["a dog"])),
        (t.encode_words("a fox", 12), t.encode_words([["a", "fox"]], 12)),
        (t.encode_words(["a fox"], 12), t.encode_words([["a", "fox"]], 12)),
        (t.encode_windows("a", "fox", 12, 2), t.encode_windows(["a"], ["fox"], 12, 2)),
    ):
        assert len(given) == 1 and given[0] == listed[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_lone_surrogates_are_read_as_one_unknown_character_each(family, tokenizers):
    t = tokenizers[family]
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
        (lambda t: t.encode(["a", float("nan")]), r"texts\[1\] is nan, not a string"),
        (lambda t: t.encode(b"ab"), r"texts\[0\] is 97, not a string"),
        (lambda t: t.encode([("a", "b")]), r"texts\[0\] is \('a', 'b'\), not a string"),
        (lambda t: t.encode(None), "texts=None must be a list of strings"),
        (lambda t: t(["a"], [3]), r"pairs\[0\] is 3, not a string"),
        (lambda t: t.encode(["a"], ["b", "c"]), "pairs holds 2 texts and texts 1"),
        (lambda t: t.encode_words([["a"], ["b", 2.0]], 8), r"sentences\[1\]\[1\] is 2.0"),
        (lambda t: t.encode_words([["a"], None], 8), "sentences must be a list of sentences"),
        (lambda t: t.encode_windows([None], ["a"], 8, 1), r"questions\[0\] is None"),
        (lambda t: t.encode_windows(["a"], [None], 8, 1), r"contexts\[0\] is None"),
        (lambda t: t.tokens(None), r"text\[0\] is None"),
        (lambda t: train_wordpiece([None], 50), r"texts\[0\] is None"),
        (lambda t: train_byte_level_bpe([None], 500), r"texts\[0\] is None"),
        (lambda t: train_unigram([None], 50), r"texts\[0\] is None"),
    ],
)
def test_what_is_no_text_is_named(call, message, tokenizer):
    with pytest.raises(InputError, match=message):
        call(tokenizer)


# Long texts


@pytest.mark.parametrize("family", FAMILIES)
def test_lengths_without_room_are_named_and_no_call_panics(family, tokenizers):
    tokenizer = tokenizers[family]
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
    for stride in (-1, 4, 5, 9):
        with pytest.raises(InputError, match=f"stride={stride} must be at least 0 and below 4"):
            tokenizer.encode_words([words], one + 4, stride)
    for call in (
        lambda: tokenizer([text], max_length="8"),
        lambda: tokenizer.encode([text], max_length=8.5),
        lambda: tokenizer.encode_words([words], "8"),
        lambda: tokenizer.encode_windows([text], [text], 32, 5, "8"),
    ):
        with pytest.raises(InputError, match=r"length=('8'|8\.5) must be a whole number"):
            call()
    for stride, longest in ((-1, 5), (5, 0)):
        with pytest.raises(InputError, match=f"max_question_length={longest} at least 1"):
            tokenizer.encode_windows([text], [text], 32, stride, longest)


@pytest.mark.parametrize("family", FAMILIES)
def test_long_questions_are_cut_from_their_end(family, tokenizers):
    tokenizer = tokenizers[family]
    context = " ".join(TEXTS[:3] * 4)
    special = tokenizer.num_special_tokens
    questions = ["fox " * 200, TEXTS[1] * 20, "fox ?"]
    lengths = [len(tokenizer.tokens(q)) for q in questions]
    half = (128 - special) // 2
    for max_length, longest, limit in ((128, 64, half), (384, 64, 64), (384, 9, 9)):
        windows = tokenizer.encode_windows(questions, [context] * 3, max_length, 64, longest)
        for i, length in enumerate(lengths):
            own = [w for w in windows if w.example == i]
            assert {w.truncated for w in own} == {length > limit}
            # A character that several byte tokens share goes as a whole.
            due = min(length, limit)
            assert due - 3 <= own[0].sources.count(0) <= due
            assert len({w.sources.count(0) for w in own}) == 1
            first = own[0].sources.index(0)
            here = slice(first, first + own[0].sources.count(0))
            assert own[0].token_ids[here] == tokenizer.encode(questions[i])[0].token_ids[here]
            # All of the context is read, and its offsets are those of the whole text.
            read = set()
            for window in own:
                for (start, end), source in zip(window.offsets, window.sources, strict=True):
                    read |= set(range(start, end)) if source == 1 else set()
            assert read >= {k for k, c in enumerate(context) if c.strip()}
            assert max(len(w.token_ids) for w in own) == max_length or len(own) == 1


# Many texts


def test_pieces_give_what_the_whole_gives(tokenizers, monkeypatch):
    def encode_all(tokenizer):
        words = [text.split() for text in TEXTS]
        return [
            list(tokenizer.encode(TEXTS, max_length=9)),
            list(tokenizer.encode(TEXTS, TEXTS[::-1], offsets=True)),
            list(tokenizer.encode_words(words, 8, 2)),
            list(tokenizer.encode_windows(TEXTS, TEXTS[1:] + TEXTS[:1], 16, 2)),
        ]

    for family in ("bert", "roberta", "xlnet"):
        whole = encode_all(tokenizers[family])
        with monkeypatch.context() as patch:
            patch.setattr(tokenizer_module, "PIECE_CHARACTERS", 60)
            assert [len(piece) for piece in _pieces(TEXTS)] == [2, 3, 2, 3, 3, 2, 3, 2]
            assert encode_all(tokenizers[family]) == whole


def test_encodings_are_a_sequence_of_few_bytes(tokenizer):
    texts = ["the film is not dull , a fine plot ."] * 1000
    found = tokenizer.encode(texts)
    assert len(found) == 1000 and found[-1] == found[999] == next(iter(found))
    assert found[998:] == [found[0]] * 2 and found[np.int64(3)].token_ids == found[3].token_ids
    with pytest.raises(IndexError):
        found[1000]
    arrays = (found.token_ids, found.segment_ids, found.starts, found.truncated)
    assert sum(a.nbytes for a in arrays) == 1000 * (12 * 5 + 8 + 1) + 8
    again = Encodings.from_list(list(found))
    for name in ("token_ids", "segment_ids", "starts", "truncated"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


def test_the_engines_encodings_do_not_pile_up():
    code = (
        "import pathlib\n"
        "from tfnlp.text import LengthBatches, train_wordpiece\n"
        "def peak():\n"
        "    status = pathlib.Path('/proc/self/status').read_text()\n"
        "    return int(status.split('VmHWM:')[1].split()[0]) / 1024\n"
        "texts = [' '.join(['film', 'dull'] * 10) for _ in range(20000)]\n"
        "tokenizer = train_wordpiece(texts[:9], 300)\n"
        "before = peak()\n"
        "batches = LengthBatches(tokenizer.encode(texts), 32, shuffle=True)\n"
        "assert sum(map(len, batches.batch_indices())) == 20000\n"
        "print(peak() - before)"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory is read from /proc")
    # 17 kB a text, 340 MB, where every encoding was kept.
    assert float(subprocess.check_output([sys.executable, "-c", code])) < 150


def test_batches_of_encodings_and_of_lists_are_the_same(tokenizer):
    prompts, endings = ["the film"] * 4, ["is dull", "is not a fine plot", "", "."]
    found = tokenizer.encode(prompts, endings)
    rows = list(found)
    for given, listed in (
        (found, rows),
        (Encodings.from_list([rows[:2], rows[2:]]), [tuple(rows[:2]), tuple(rows[2:])]),
    ):
        groups = [x if isinstance(x, tuple) else (x,) for x in listed]
        lengths = [max(len(e.token_ids) for e in group) for group in groups]
        assert list(Encodings.from_list(given).lengths) == lengths
        order = np.array([1, 0])
        a, b = (LengthBatches(x, 2, pad_token_id=9).batch(order)[0] for x in (given, listed))
        for key in a:
            np.testing.assert_array_equal(a[key], b[key])
    assert a["token_ids"].shape == (2, 2, 10)
    np.testing.assert_array_equal(a["token_ids"][0, 1], [2, 10, 7, 3, 12, 3, 9, 9, 9, 9])


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


def test_decoding_leaves_special_tokens_out(tokenizer):
    inputs = tokenizer(["a fine film", "정말 지루하다 !"])
    assert tokenizer.decode(inputs["token_ids"]) == ["a fine film", "정말 지루하다!"]
    assert tokenizer.decode(inputs["token_ids"].tolist()) == ["a fine film", "정말 지루하다!"]
    assert tokenizer.decode(inputs["token_ids"][0]) == tokenizer.decode([5, 6, 7]) == "a fine film"
    assert tokenizer.decode([]) == tokenizer.decode([2, 3, 0]) == ""
    for ids in (5, None, "a fine film", [[5], [float("nan")]]):
        with pytest.raises(InputError, match=r"token_ids=.* must be whole numbers"):
            tokenizer.decode(ids)
    with pytest.raises(InputError, match="token_ids hold -100 to 5, but ids are at least 0"):
        tokenizer.decode(np.array([[5, -100]]))


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="nope is no folder"):
        load_tokenizer(tmp_path / "nope")


# Files


@pytest.mark.parametrize("first", FAMILIES)
@pytest.mark.parametrize("second", FAMILIES)
def test_a_second_tokenizer_takes_the_place_of_the_first(first, second, tokenizers, tmp_path):
    for name in ("special_tokens_map.json", "added_tokens.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    tokenizers[first].save(tmp_path)
    tokenizers[second].save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is type(tokenizers[second])
    assert loaded.to_json() == tokenizers[second].to_json()
    own = {
        "wordpiece": {"vocab.txt"},
        "bpe": {"vocab.json", "merges.txt"},
    }.get(KINDS.get(second), set())
    own |= {"tokenizer.json", "tokenizer_config.json", "notes.txt"}
    assert {path.name for path in tmp_path.iterdir()} == own


@pytest.mark.parametrize("family", FAMILIES)
def test_a_models_config_is_left_alone(family, tokenizers, tmp_path):
    config = json.dumps({"model_type": "deberta", "hidden_size": 12})
    (tmp_path / "config.json").write_text(config)
    if family in ("bert", "deberta"):
        tokenizers[family].save(tmp_path)
        assert type(load_tokenizer(tmp_path)) is type(tokenizers[family])
    else:
        with pytest.raises(
            InputError, match=f"family 'deberta' and the tokenizer one for '{family}'"
        ):
            tokenizers[family].save(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    assert (tmp_path / "config.json").read_text() == config


def test_wordpiece_is_known_by_its_class_or_its_file(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    for name in ("tokenizer_config.json", "vocab.txt"):  # either is enough
        kept = (tmp_path / name).read_text()
        (tmp_path / name).unlink()
        assert load_tokenizer(tmp_path).vocabulary == tokenizer.vocabulary
        (tmp_path / name).write_text(kept)


def test_groups_of_other_sizes_are_refused():
    row = Encoding([1], [0])
    with pytest.raises(ValueError, match=r"encodings\[1\] has 1 rows .* and encodings\[0\] 2"):
        Encodings.from_list([[row] * 2, [row], [row] * 3])
