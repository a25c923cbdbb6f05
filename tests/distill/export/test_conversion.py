"""Every family as a .tflite file: like Keras, with TFLite's operations alone."""

import dataclasses
import gc

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import LiteRtBackend, TextClassifier
from tests.distill.expected import keras_outputs, padded_inputs, softmax
from tfnlp.configs import CELLS
from tfnlp.configs.sizes import FAMILIES
from tfnlp.models import RecurrentConfig, build_model
from tfnlp.text import Encoding

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24}
SIZES |= {"max_length": 40, "initializer_range": 0.2}


def config_of(name, tokenizer):
    if name in CELLS:
        own = {"num_layers": 1, "hidden_dim": 16, "initializer_range": 0.2}
        own |= {"cell": name, "bidirectional": name != "gru"}
        return RecurrentConfig(tokenizer.vocabulary_size, **own)
    if name == "static":
        return FAMILIES[name](tokenizer.vocabulary_size, hidden_dim=16)
    if name in ("textcnn", "bag"):
        own = {"channels": "multichannel"} if name == "textcnn" else {"word_ngrams": 3}
        return FAMILIES[name](tokenizer.vocabulary_size, hidden_dim=16, **own)
    config = FAMILIES[name](vocabulary_size=tokenizer.vocabulary_size, **SIZES)
    if name in ("albert", "electra"):
        config = dataclasses.replace(config, embedding_dim=8)
    if "deberta" in name:
        config = dataclasses.replace(config, max_distance=24)
    if name == "deberta_v2":
        config = dataclasses.replace(config, num_buckets=8, convolution_size=3)
    if name == "modernbert":  # a local block beside the global one
        config = dataclasses.replace(config, num_layers=2, local_attention=6)
    if name == "transformer_xl":  # a window shorter than the text, and distances clamped
        config = dataclasses.replace(
            config, cutoffs=(8, 16), div_value=2, memory_length=6, clamp_length=4
        )
    if name in ("xlnet", "transformer_xl"):
        config = dataclasses.replace(config, max_length=None)
    return config


def encodings_of(tokenizer):
    return tokenizer.encode(["film", "the film is not dull , a fine plot", "정말 좋다"])


def test_an_export_keeps_no_graph(tokenizer, tmp_path):
    model = build_model(config_of("bert", tokenizer), "classifier", 2)

    def graphs():
        export_tflite(model, tmp_path / "x.tflite", tokenizer, ["bad", "good"])
        gc.collect()
        return sum(isinstance(x, tf.Graph) for x in gc.get_objects())

    assert graphs() == graphs()


def padded_outputs(path, encoding):
    """What the file gives where padding stands behind the text: ids like any, and mask 0."""
    inputs = padded_inputs(encoding, len(encoding.token_ids) + 5, padding=7)
    outputs = Interpreter(str(path)).get_signature_runner()(**inputs)
    return {name: value[0] for name, value in outputs.items()}


# Of what a file gives beside Keras, and with padding beside without.
TOLERANCES = {"float32": (1e-4, 1e-5), "int8": (0.1, 0.1)}


def compare_with_keras(path, backend, model, quantization="float32"):
    """The outputs for each text are the model's, with padding behind it and without."""
    tolerance, of_padding = TOLERANCES[quantization]
    for encoding in encodings_of(backend.tokenizer):
        expected = keras_outputs(model, encoding)
        if "logits" in expected:
            expected["probability"] = softmax(expected["logits"])
        padded = padded_outputs(path, encoding)
        for name, value in backend.run_one(encoding).items():
            np.testing.assert_allclose(value, expected[name], atol=tolerance)
            np.testing.assert_allclose(padded[name][: len(value)], value, atol=of_padding)


NAMES = sorted(FAMILIES.keys() - {"deberta_v3", "elmo"})
CASES = [(name, "float32") for name in NAMES]
# One of each kind of product: dense, convolved, recurrent and by distance.
CASES += [(name, "int8") for name in ("bert", "textcnn", "lstm", "xlnet", "modernbert")]


@pytest.mark.parametrize(("name", "quantization"), CASES)
def test_every_family_gives_what_keras_gives(name, quantization, tokenizer, tmp_path):
    model, path = build_model(config_of(name, tokenizer), "classifier", 3), tmp_path / "m.tflite"
    export_tflite(model, path, tokenizer, ["x", "y", "z"], Export(quantization, 24))
    backend = TextClassifier(path).backend
    compare_with_keras(path, backend, model, quantization)
    # An empty text, where the tokenizer frames none, is read as padding.
    expected = softmax(keras_outputs(model, Encoding([0], [0]), real=0)["logits"])
    found = backend.run_one(Encoding([], []))["probability"]
    np.testing.assert_allclose(found, expected, atol=TOLERANCES[quantization][0])


def test_scores_of_a_chooser(tokenizer, tmp_path):
    model, path = build_model(config_of("bert", tokenizer), "chooser"), tmp_path / "m.tflite"
    export_tflite(model, path, tokenizer, options=Export("float32", 24))
    encodings = tokenizer.encode(["the film is"] * 3, ["dull", "fine !", "not a plot"])
    for encoding, found in zip(encodings, LiteRtBackend(path).run(encodings), strict=True):
        ids, segment_ids = ([[getattr(encoding, x)]] for x in ("token_ids", "segment_ids"))
        inputs = {"token_ids": np.array(ids), "segment_ids": np.array(segment_ids)}
        logits = model(inputs | {"padding_mask": np.ones_like(ids)})["logits"]
        np.testing.assert_allclose(found["score"], logits[0], atol=1e-4)


def test_other_tokenizers_travel_in_the_file(tmp_path):
    from tfnlp.text import train_byte_level_bpe, train_unigram

    texts = ["the film is not dull , a fine plot", "정말 좋다 영화"] * 3
    for tokenizer, name in (
        (train_byte_level_bpe(texts, 300), "bpe"),
        (train_unigram(texts, 90, "xlnet"), "unigram"),
    ):
        model = build_model(config_of("distilbert", tokenizer), "classifier", 2)
        path = tmp_path / f"{name}.tflite"
        differences = export_tflite(model, path, tokenizer, ["a", "b"], Export("float32", 24))
        assert "MediaPipe has no tokenizer of this kind" in differences[0]
        found = TextClassifier(path).classify(texts, texts[::-1])
        for encoding, answer in zip(tokenizer.encode(texts, texts[::-1], 24), found, strict=True):
            expected = softmax(keras_outputs(model, encoding)["logits"])
            np.testing.assert_allclose(list(answer.probabilities.values()), expected, atol=1e-4)
        words = LiteRtBackend(path).tokenizer.encode_words([["fine", "plot"]], 12)
        assert words[0].token_ids == tokenizer.encode_words([["fine", "plot"]], 12)[0].token_ids
