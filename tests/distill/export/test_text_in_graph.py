"""The tokenizer in the graph, and strings that nobody wrote by hand."""

import dataclasses
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.hostile_texts import LONG, agreements, hostile_strings
from distill.export import text_in_graph
from distill.export.character_rules import CODE_POINTS
from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import StringClassifier, load_runner
from tests.distill.expected import keras_probabilities
from tfnlp.models import build_model
from tfnlp.tasks.kinds import CLASSIFIER, TAGGER
from tfnlp.text import WordPieceTokenizer, train_unigram
from tfnlp.utils.errors import InputError

LABELS = ["bad", "good"]
UNASSIGNED = ("Cn", "Co")  # the categories of unassigned characters, and of those for private use
TEXTS = ["a fine film", "", "정말 좋다!", "the\tplot\x00 is\x07 dull, 字 film", "zzz", "x " * 60]
TEXTS += ["A FINE film", "Fílm", "a fine\u200bfilm", "the\x0bfilm"]


@pytest.fixture(scope="module")
def model(tiny_config):
    return build_model(dataclasses.replace(tiny_config, num_layers=1), "classifier", 2)


def test_strings_get_the_models_probabilities(model, tokenizer, tmp_path):
    tokenizer = WordPieceTokenizer(tokenizer.vocabulary, strip_accents=True)
    path = tmp_path / "m.tflite"
    options = {"quantization": "float32", "max_length": 20, "tokenizer_in_graph": True}
    assert export_tflite(model, path, tokenizer, LABELS, Export(**options)) == []
    answers = StringClassifier(path).classify(TEXTS)
    rows = [list(answer.probabilities.values()) for answer in answers]
    np.testing.assert_allclose(rows, keras_probabilities(model, tokenizer, TEXTS, 20), atol=1e-5)
    assert [answer.label for answer in answers] == [LABELS[int(np.argmax(row))] for row in rows]
    with pytest.raises(InputError, match=r"is of the kind string classifier; use .*StringClas"):
        load_runner(path)


@pytest.mark.parametrize("settings", [(True, False, True), (False, True, False)])
def test_the_graph_reads_every_character_as_the_tokenizer(settings):
    """Each alone, in a word, and at its edges; of unassigned ones one in 997."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(chr, range(33, 127)), "##a", "##s"]
    tokens += ["é", "É", "##é", "ß", "字", "##字", "가", "##가", "ᄀ", "ｱ", "²", "½"]
    tokenizer = WordPieceTokenizer(tokens, *settings)
    tokenize = tf.function(
        text_in_graph.text_input(tokenizer, 100_000),
        input_signature=[tf.TensorSpec((1,), tf.string)],
    )

    def ids(text):
        return tokenize(tf.constant([text]))[0][0].numpy().tolist()

    characters = [c for c in map(chr, CODE_POINTS) if unicodedata.category(c) not in UNASSIGNED]
    characters += map(chr, CODE_POINTS[::997])
    texts = [
        " ".join(f"{c} {c}a a{c}a a{c}" for c in characters[i : i + 512])
        for i in range(0, len(characters), 512)
    ]
    for text, encoding in zip(texts, tokenizer.encode(texts), strict=True):
        if ids(text) != encoding.token_ids:
            characters = text.split(" ")[::4]
            assert [c for c in characters if ids(c) != tokenizer.encode([c])[0].token_ids] == []
            raise AssertionError(text)
    odd = ["Straße ＡＢＣ x² ½ ｱｲ", "a\x0bb\x00c a\u200bb É字字é", "ＦＩ ﬁ İ ǅ Å", "\u2028a\x85b"]
    for text in odd:
        assert ids(text) == tokenizer.encode([text])[0].token_ids
    # The bound of a word: 100 characters, 300 bytes.
    for length, same in ((100, True), (101, False), (300, False), (301, True)):
        assert (ids("a" * length) == tokenizer.encode(["a" * length])[0].token_ids) == same


def test_models_that_cannot_take_strings_are_refused(tokenizer):
    for arguments, message in (
        ((TAGGER, tokenizer, []), "is for classifiers, and the file is a tagger's"),
        ((CLASSIFIER, tokenizer, [8]), "has no fixed lengths"),
        ((CLASSIFIER, train_unigram(["a film"], 30), []), "needs WordPiece"),
    ):
        with pytest.raises(InputError, match=message):
            text_in_graph.check_text_input(*arguments)


def test_hostile_strings_get_the_labels_of_keras(model, tokenizer, tmp_path):
    texts = hostile_strings(200)
    assert len(texts) == 200 and texts == hostile_strings(200) and "" in texts
    assert max(map(len, texts)) == LONG
    for part in ("\ud800", "\u202e", "\U0001f468\u200d", "\x00", "\u0301"):
        assert any(part in text for text in texts)
    found = agreements(model, tokenizer, LABELS, tmp_path, texts, ["float32"], 48)
    assert found["float32"] >= 0.99
