"""Exported encoder-decoders: the same tokens as Keras writes."""

import collections
import dataclasses
import sys

import numpy as np
import pytest

from benchmarks.forced_tokens import forced, measured
from distill.export.generation_export import export_translator
from distill.export.options import DecoderExport
from distill.runtime import Beam, Greedy, Sample, TextGenerator, Translator
from tests.distill.expected import constants_of, tree_of
from tests.distill.searches import assert_same_texts, without_xla
from tests.grammar_corpus import make_reviews
from tests.text.tokenizers.test_marian import KOREAN, learned
from tfnlp import generation
from tfnlp.models import TransformerConfig, build_model
from tfnlp.tasks import ParallelTexts
from tfnlp.text import train_tokenizer
from tfnlp.text.tokenizers.marian import MarianTokenizer
from tfnlp.text.tokenizers.unigram import UnigramTokenizer
from tfnlp.utils.errors import InputError

TEXTS = [text for text, _ in make_reviews(200)]
SOURCES = ["", *(" ".join(text.split()[:4]) for text in TEXTS[:50])]
STEPS, BEAMS = 9, 3
OPTIONS = {"fixed_lengths": [6, 40], "beams": BEAMS, "max_new_tokens": STEPS}
SIZES = {"num_heads": 2, "intermediate_dim": 64, "max_length": 64, "dropout": 0.0}


@pytest.fixture(scope="module")
def bpe():
    return train_tokenizer(TEXTS, "bpe", 300, "roberta")[0]


def config_of(bpe, **kwargs):
    ids = {"pad_token_id": bpe.pad_token_id, "start_token_id": bpe.pad_token_id}
    sizes = SIZES | {"vocabulary_size": bpe.vocabulary_size, "end_token_id": bpe.token_id("</s>")}
    return TransformerConfig(**sizes | ids | kwargs)


@pytest.fixture(
    scope="module",
    params=[
        {"num_layers": 1, "num_decoder_layers": 2},
        {"num_layers": 2, "num_decoder_layers": 1, "norm_first": True, "output_bias": True}
        | {"share_embeddings": False, "tie_embeddings": False},
    ],
    ids=["post-norm", "pre-norm, tables apart"],
)
def pair(request, bpe, tmp_path_factory):
    """A model of random weights that ends its texts with a token that it often writes."""
    config = config_of(bpe, hidden_dim=16, initializer_range=0.6, **request.param)
    model = build_model(config, "sequence_to_sequence")
    translator = generation.Translator(model, bpe, None, Greedy(), None, 4, batch_size=51)
    found = without_xla(translator)(SOURCES)
    counts = collections.Counter(i for texts in found for x in texts for i in x.token_ids)
    config = dataclasses.replace(config, end_token_id=counts.most_common(1)[0][0])
    again = build_model(config, "sequence_to_sequence")
    again.set_weights(model.get_weights())
    path = tmp_path_factory.mktemp("file") / "model.tflite"
    export_translator(again, path, bpe, None, DecoderExport("float32", **OPTIONS))
    return again, path


@pytest.mark.parametrize(
    "search", [Greedy(), Beam(BEAMS, 0.2, early_stopping=True, best=2)], ids=["greedy", "early"]
)
def test_the_same_texts_as_keras(pair, bpe, search):
    model, path = pair
    translator = generation.Translator(model, bpe, None, search, None, STEPS, batch_size=51)
    expected = without_xla(translator)(SOURCES)
    found = Translator(path, search)(SOURCES)
    assert_same_texts(found, expected)
    lengths = [len(x.token_ids) for texts in found for x in texts]
    assert 5 < sum(n < STEPS - 1 for n in lengths) < len(lengths)


def test_a_forced_end_does_not_count_as_the_models(pair, bpe):
    """With 2 new tokens a text has one token of the model's own, or was ended before it."""
    model, path = pair
    for translator in (
        without_xla(generation.Translator(model, bpe, None, Greedy(), None, 2, batch_size=51)),
        Translator(path, Greedy(), 2),
    ):
        blank, *found = (texts[0] for texts in translator(SOURCES))
        assert (blank.text, blank.token_ids, blank.ended) == ("", (), True)
        assert {len(x.token_ids) for x in found} >= {1}
        assert [x.ended for x in found] == [not x.token_ids for x in found]


def test_draws_depend_on_the_number_of_a_source(pair):
    translator = Translator(pair[1], Sample(seed=1), 8)
    rows = translator.source_ids(SOURCES[1:4])
    whole = dict(translator.each_translation(rows))
    assert dict(translator.each_translation(rows[2:], first=2)) == {0: whole[2]}
    assert dict(translator.each_translation(rows[2:])) != {0: whole[2]}


def test_tokens_are_compared_as_far_as_a_file_writes(pair, bpe):
    """References may be longer than what the caches hold."""
    model, path = pair
    texts = ParallelTexts(SOURCES[1:9], [" ".join(text.split()[:8]) for text in TEXTS[:8]])
    examples = forced(model, bpe, texts)
    tokens = bpe.encode_closed(texts.targets, 0).lengths
    assert sorted(len(read) for _, read, _ in examples) == sorted(tokens)
    assert max(len(read) for _, read, _ in examples) > STEPS * BEAMS
    same, first_ms = measured(Translator(path), examples)
    assert same > 0.98 and first_ms > 0  # all but near ties


def test_a_file_of_8_bits_holds_its_weights_once(pair, bpe, tmp_path):
    (model, whole), path = pair, tmp_path / "model.tflite"
    export_translator(model, path, bpe, options=DecoderExport(**OPTIONS))
    tree = tree_of(path)
    keys = [s.signatureKey.decode() for s in tree.signatureDefs]
    assert sorted(keys) == ["decode", "decode_3", "encode_40", "encode_6"]
    assert not any(code.customCode for code in tree.operatorCodes)
    weights = sum(int(np.prod(v.shape)) for v in model.weights)
    # The tables once for lookups and output, and some sinusoids.
    assert 4 * weights < constants_of(whole) < 4.6 * weights
    assert constants_of(path) < 0.6 * constants_of(whole)
    (text,) = Translator(path)(SOURCES[1])[0]
    assert isinstance(text.score, float)


def test_bad_input_is_refused(pair, bpe, tmp_path):
    model, path = pair

    def export(**kwargs):
        export_translator(model, tmp_path / "m", bpe, options=DecoderExport(**OPTIONS | kwargs))

    for call, message in (
        (lambda: Translator(path)(["a", "film " * 60]), r"sources\[1\]"),
        (lambda: Translator(path)([3]), r"sources\[0\]"),
        (lambda: TextGenerator(path), "Translator"),
        (lambda: export(fixed_lengths=[65]), "fixed_lengths=65"),
        (lambda: export(max_new_tokens=65), "max_new_tokens=65"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    assert not (tmp_path / "m").exists()


def test_a_pair_of_sentencepiece_models_travels_in_the_file(tmp_path, monkeypatch):
    source, target = learned(TEXTS, 120), learned(KOREAN, 60)
    names = [*dict.fromkeys(["</s>", "<unk>", *source[1], *target[1], "<pad>"])]
    tokenizer = MarianTokenizer(source[0], target[0], {name: i for i, name in enumerate(names)})
    ids = {"pad_token_id": len(names) - 1, "start_token_id": len(names) - 1, "end_token_id": 0}
    sizes = SIZES | {"num_layers": 1, "hidden_dim": 16, "initializer_range": 0.6}
    config = TransformerConfig(vocabulary_size=len(names), **sizes, **ids)
    model, path = build_model(config, "sequence_to_sequence"), tmp_path / "model.tflite"
    options = DecoderExport("float32", **OPTIONS | {"beams": 1, "fixed_lengths": [16]})
    export_translator(model, path, tokenizer, None, options)
    other = UnigramTokenizer([(name, -1.0) for name in names], "marian")
    for pair in ((tokenizer, other), (other, tokenizer.target), (tokenizer, tokenizer)):
        with pytest.raises(InputError, match=r"^A file holds a MarianTokenizer"):
            export_translator(model, tmp_path / "m", *pair, options=DecoderExport(**OPTIONS))
    texts = ["the film is", "a cast"]
    translator = generation.Translator(model, tokenizer, None, Greedy(), None, STEPS)
    expected = without_xla(translator)(texts)
    assert Translator(path)(texts) == expected
    found = Translator(path).target_tokenizer.encode(["영화"])[0].token_ids
    assert [*found] == [*tokenizer.target.encode(["영화"])[0].token_ids]
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ImportError, match="sentencepiece"):
        Translator(path)
