"""Entities of a text by a dictionary, aligned to the first piece of each mention."""

import numpy as np
import pytest

from tfnlp.baselines import WordVectors
from tfnlp.checkpoints import load_model, save_model
from tfnlp.configs import BertConfig
from tfnlp.knowledge import EntityTokenizer, KnowledgeGraph, load_entity_tokenizer, named_vectors
from tfnlp.models import build_model, with_entities
from tfnlp.text import LengthBatches, WordPieceTokenizer, load_tokenizer, train_tokenizer
from tfnlp.text.tokenizers.tokenizer_files import save_tokenizer
from tfnlp.text.tokenizers.wordpiece import FIRST_TOKENS
from tfnlp.utils.errors import InputError

ENTITIES = {"film": 1, "fine plot": 2, "believable": 3, "unbelievable plot": 4, "좋다": 5}


@pytest.fixture
def finding(tokenizer):
    return EntityTokenizer.of(tokenizer, ENTITIES)


def mentions(tokenizer, encoding):
    ids = tokenizer.entity_ids(encoding.token_ids).tolist()
    pairs = zip(encoding.token_ids, ids, strict=True)
    return {tokenizer.vocabulary[piece]: entity for piece, entity in pairs if entity}


@pytest.mark.parametrize(
    ("text", "pair", "found"),
    [
        ("the film is a fine plot .", None, {"film": 1, "fine": 2}),
        ("Films are fine", None, {"film": 1}),  # film ##s
        ("unbelievable plot", None, {"un": 4}),
        ("unbelievable film", None, {"film": 1}),
        ("a fine", "plot , film", {"film": 1}),  # not across texts
        ("정말 좋다", None, {"좋다": 5}),
        ("", None, {}),
    ],
)
def test_an_entity_stands_at_the_first_piece_of_its_mention(finding, text, pair, found):
    (encoding,) = finding.encode([text], None if pair is None else [pair])
    assert mentions(finding, encoding) == found


def test_all_ways_to_encode_give_entities(finding, tokenizer):
    rows = finding.encode(["a film", "the film is dull"], max_length=5)
    padded = finding(["a film", "the film is dull"], max_length=5)
    assert padded["entity_ids"].tolist() == [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0]]
    plain = tokenizer.encode(["a film", "the film is dull"], max_length=5)
    assert rows.fingerprint() != plain.fingerprint()
    words = finding.encode_words([["the", "film"]], 10)
    windows = finding.encode_windows(["film"], ["a fine plot"], 10, 2)
    assert words.further["entity_ids"].ids.tolist() == [0, 0, 1, 0]
    assert windows.further["entity_ids"].ids.tolist() == [0, 1, 0, 0, 2, 0, 0]
    batches = LengthBatches(rows, 2, fixed_length=6)
    inputs, signature = batches.batch(np.arange(2))[0], batches.signature()[0]
    assert inputs.keys() == signature.keys() and inputs["entity_ids"].shape == (2, 6)


def test_a_folder_keeps_the_dictionary(finding, tokenizer, tmp_path):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
    config = BertConfig(tokenizer.vocabulary_size, **sizes, max_length=20)
    model = with_entities(build_model(config, "classifier", 2), np.ones((5, 4)), 1, 2)
    save_model(model, tmp_path, ["a", "b"], finding)
    loaded = load_entity_tokenizer(tmp_path)
    text = "정말 fine plot , unbelievable plots"
    assert loaded.entities == ENTITIES
    for name, value in finding([text]).items():
        np.testing.assert_array_equal(loaded([text])[name], value)
    inputs = loaded([text])
    logits = load_model(tmp_path, "classifier")(inputs)["logits"]
    np.testing.assert_allclose(logits, model(inputs)["logits"], atol=1e-6)
    with pytest.raises(InputError, match="the model reads entities beside the tokens"):
        load_tokenizer(tmp_path)
    (tmp_path / "entities.tsv").write_text("film\n")
    with pytest.raises(InputError, match=r"entities.tsv must have a lemma, a tab and a number"):
        load_entity_tokenizer(tmp_path)
    bpe, _ = train_tokenizer(["a film"], "bpe", 300)
    with pytest.raises(InputError, match="ByteLevelBpeTokenizer finds no entities"):
        EntityTokenizer.of(bpe, ENTITIES)


def test_vectors_are_those_of_first_senses():
    graph = KnowledgeGraph(["a.1", "b.1", "c.1"], [], None, {"a": [0], "b": [2, 1], "both": [2]})
    vectors = WordVectors(["c.1", "b.1", "x"], np.eye(3))
    lemmas, table = named_vectors(graph, vectors)
    assert lemmas == {"b": 1, "both": 1}
    np.testing.assert_array_equal(table, [[1, 0, 0]])
    with pytest.raises(InputError, match="None of the 1 vectors, such as x, is of an entity of"):
        named_vectors(graph, WordVectors(["x"], [[1.0]]))


@pytest.mark.parametrize("lowercase", [False, True])  # which decomposes Hangul
def test_korean_is_looked_up_by_morphemes(lowercase, tmp_path):
    pytest.importorskip("kiwipiepy")
    pieces = WordPieceTokenizer([*FIRST_TOKENS, "x"], lowercase).split_words("배우 영화를")
    vocabulary = [*FIRST_TOKENS, *pieces]
    tokenizer = WordPieceTokenizer(vocabulary, lowercase)
    entities = {"영화": 1, "배우": 2, "를": 3}
    finding = EntityTokenizer.of(tokenizer, entities, by_morphemes=True)
    assert finding.encode(["배우 영화를"]).further["entity_ids"].ids.tolist() == [0, 2, 1, 0]
    plain = EntityTokenizer.of(tokenizer, entities)
    assert plain.encode(["배우 영화를"]).further["entity_ids"].ids.tolist() == [0, 2, 0, 0]
    save_tokenizer(finding, tmp_path)
    loaded = EntityTokenizer.from_folder(tmp_path)
    assert loaded.encode(["배우 영화를"]).further["entity_ids"].ids.tolist() == [0, 2, 1, 0]
