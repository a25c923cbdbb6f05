"""Marian's tokenizers; against `transformers`' own in tests/parity/test_marian_tokenizer.py."""

import json

import numpy as np
import pytest

from tests.grammar_corpus import make_reviews
from tests.text.family_tokenizers import sentencepiece_model
from tfnlp.objectives.batches.special_token_template import SpecialTokenTemplate
from tfnlp.text import load_tokenizer, train_tokenizer
from tfnlp.text.tokenizers.marian import MarianTokenizer
from tfnlp.text.tokenizers.tokenizer_loading import kind_for
from tfnlp.text.tokenizers.unigram import UnigramTokenizer
from tfnlp.utils.errors import InputError

KOREAN = [
    "정말 재미있는 영화예요",
    "결말은 아주 지루했어요",
    "배우들이 훌륭하고 음악도 좋아요",
] * 20


@pytest.fixture(scope="module")
def english():
    return [text for text, _ in make_reviews(200)]


def learned(texts, size):
    """A SentencePiece model of its own trainer, bytes, and its pieces."""
    import sentencepiece

    model = sentencepiece_model(texts, size, bos_id=-1)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    return model, [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]


@pytest.fixture(scope="module")
def pair_of_models(english):
    """Two models and the tokens of both in an order of their own, as Marian's folders have."""
    source, target = learned(english, 120), learned(KOREAN, 60)
    names = sorted({*source[1], *target[1]} - {"</s>", "<unk>"})
    names.remove(source[1][10])  # a piece that is no token
    names = ["</s>", "<unk>", *names, ">>ko<<", "<pad>"]
    return source[0], target[0], {name: i for i, name in enumerate(names)}


@pytest.fixture
def folder(pair_of_models, tmp_path):
    MarianTokenizer(*pair_of_models).save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    return tmp_path


def test_one_model_of_both_languages_comes_back(english, tmp_path):
    assert kind_for("marian") == kind_for("pegasus") == "unigram"
    tokenizer, family = train_tokenizer([*english, *KOREAN], "unigram", 300, "marian")
    first = [tokenizer.token(i) for i in range(3)]
    assert (family, first) == ("marian", ["</s>", "<unk>", "<pad>"])
    assert (tokenizer.pad_token_id, tokenizer.unknown_token_id) == (2, 1)
    for model_type in ("marian", "pegasus"):
        (tmp_path / "config.json").write_text(f'{{"model_type": "{model_type}"}}')
        tokenizer.save(tmp_path)
        again = load_tokenizer(tmp_path)
        assert isinstance(again, UnigramTokenizer) and again.family == "marian"
        for text in (*english[:20], *KOREAN[:3], " ｆine\t film ", ""):
            (expected,), (found,) = tokenizer.encode([text]), again.encode([text])
            assert found.token_ids == expected.token_ids and found.token_ids[-1] == 0
    assert tokenizer.tokens(" ｆine\t film ") == tokenizer.tokens("fine film")
    assert tokenizer.decode(tokenizer.encode(["fine film"])[0].token_ids) == "fine film"
    assert tokenizer.decode([1, *tokenizer.encode(["fine film"])[0].token_ids]) == "fine film"
    assert SpecialTokenTemplate.from_tokenizer(tokenizer).single == ((), ((0, 0),))
    lower, _ = train_tokenizer(english, "unigram", 100, "marian", lowercase=True)
    assert lower.tokens("FINE") == lower.tokens("fine")


def test_pieces_are_looked_up_among_the_tokens(folder, pair_of_models, english):
    _, _, tokens = pair_of_models
    tokenizer = load_tokenizer(folder)
    assert isinstance(tokenizer, MarianTokenizer)
    assert tokenizer.vocabulary_size == len(tokens) == tokenizer.pad_token_id + 1
    pieces = tokenizer.tokens(english[0])
    assert "".join(pieces).replace("▁", " ").strip() == english[0]
    ids = [tokens.get(piece, 1) for piece in pieces]
    assert tokenizer.encode([english[0]])[0].token_ids == [*ids, 0]
    known = "".join(piece for piece in pieces if piece in tokens)
    decoded = tokenizer.decode([*ids, 0, tokenizer.pad_token_id])
    assert decoded == known.replace("▁", " ").strip()
    other = tokenizer.target
    assert other.tokens(KOREAN[0]) != tokenizer.tokens(KOREAN[0])
    assert other.decode(other.encode(KOREAN[:1])[0].token_ids) == KOREAN[0]
    assert other.target.tokens(english[0]) == pieces
    # Of the other language's tokens too, as a model may write any.
    assert tokenizer.decode([other.encode(KOREAN[1:2])[0].token_ids, []]) == [KOREAN[1], ""]


def test_codes_special_tokens_pairs_and_lengths(folder, pair_of_models):
    _, _, tokens = pair_of_models
    tokenizer = load_tokenizer(folder)
    assert tokenizer.tokens(">>ko<< a film")[0] == ">>ko<<"
    assert tokenizer.encode([">>ko<< a"])[0].token_ids[0] == tokens[">>ko<<"]
    assert tokenizer.encode([">>xx<< a"])[0].token_ids[0] == 1
    assert tokenizer.tokens("a</s>")[-1] == "</s>"
    assert tokenizer.encode([""])[0].token_ids == [0]
    one, two = (tokenizer.encode([text])[0].token_ids[:-1] for text in ("a film", "is fine"))
    (both,) = tokenizer.encode(["a film"], ["is fine"])
    assert both.token_ids == [*one, *two, 0]
    assert both.segment_ids == [0] * len(one) + [1] * (len(two) + 1)
    (cut,) = tokenizer.encode(["a film is fine"], max_length=3)
    assert cut.truncated and len(cut.token_ids) == 3 and cut.token_ids[-1] == 0
    inputs = tokenizer(["a", "a film is fine"])
    row = inputs["token_ids"][0]
    assert (row[inputs["padding_mask"][0] == 0] == tokenizer.pad_token_id).all()
    assert SpecialTokenTemplate.from_tokenizer(tokenizer).single == ((), ((0, 0),))
    np.testing.assert_array_equal(tokenizer.special_token_ids, [0, 1, tokenizer.pad_token_id])


def test_encode_closed_adds_the_end_token_alone(pair_of_models, english):
    tokenizer, texts = MarianTokenizer(*pair_of_models), [english[0], ""]
    closed = tokenizer.encode_closed(texts, 7)
    for text, found in zip(texts, closed, strict=True):
        (own,) = tokenizer.encode([text])
        assert found.token_ids == [*own.token_ids[:-1], 7]
    assert len(closed[0].token_ids) > 2 and closed[1].token_ids == [7]


def test_two_lists_of_tokens(pair_of_models, tmp_path):
    source, target, tokens = pair_of_models
    others = {"</s>": 0, "<unk>": 1, "<pad>": 2, "▁정말": 3}
    MarianTokenizer(source, target, tokens, others).save(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.vocabulary_size == len(tokens)
    assert tokenizer.target.vocabulary_size == 4
    assert tokenizer.target.target.vocabulary_size == len(tokens)
    assert tokenizer.target.decode([3, 0]) == "정말"


def test_broken_folders_are_refused(folder, pair_of_models):
    _, _, tokens = pair_of_models
    with pytest.raises(InputError, match=r"max_length=1 leaves no room"):
        load_tokenizer(folder).encode(["a"], max_length=1)
    without = {token: i for token, i in tokens.items() if token != "<pad>"}
    (folder / "vocab.json").write_text(json.dumps(without))
    with pytest.raises(InputError, match="The vocabulary lacks <pad>"):
        load_tokenizer(folder)
    (folder / "target.spm").unlink()
    with pytest.raises(InputError, match=r"target\.spm does not exist"):
        load_tokenizer(folder)
