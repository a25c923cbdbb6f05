"""Files of fewer bits: what they say, what they take, and what is refused before any work."""

import dataclasses
import random
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from safetensors import safe_open

from distill.compression.file_quantization import QUANTIZATIONS, check_quantization, round_rows
from distill.export import tflite
from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import TextClassifier
from distill.runtime.associated_files import read_files
from tests.distill.expected import tree_of
from tfnlp.checkpoints import load_model
from tfnlp.layers import fake_quantize, get_ranges
from tfnlp.models import build_model
from tfnlp.pipelines import Inputs
from tfnlp.quantization.fake_quantization import in_float
from tfnlp.tasks import Classification
from tfnlp.text import LengthBatches
from tfnlp.text.reading.readers import Examples
from tfnlp.training import FineTuning, RunFolder, Splits, TrainingConfig
from tfnlp.utils.errors import InputError

LABELS = ["bad", "good"]
WORDS = ["a", "fine", "film", "dull", "not", "the", "is", ".", ",", "!", "영화", "정말", "좋다"]
TEXTS = [" ".join(random.Random(i).choices(WORDS, k=2 + i % 16)) for i in range(64)]
LENGTH = 24
# The most and the least error of the logits (rms, in deviations of theirs), and the file's bytes
# for each weight.
BOUNDS = {
    "float32": (1e-5, 0, 4.4),
    "float16": (5e-4, 1e-6, 2.4),
    "int8": (0.01, 1e-4, 1.4),  # 0.003, and 0.0075 by the kernels of AVX-512
    "static_int8": (0.02, 2e-4, 1.4),  # 0.002; 0.012 to 0.02 of a model of seed 1
    "int4": (0.15, 5e-3, 0.8),
    "int4_block32": (0.15, 5e-3, 0.8),
}


def test_rows_are_rounded_to_127_steps_on_either_side():
    scales, integers = round_rows(np.array([[127.0, -63.2], [-2.54, 0.02], [0, 0]]))
    np.testing.assert_allclose(scales, [1, 0.02, 1e-12 / 127])
    assert integers.dtype == "int8" and integers.tolist() == [[127, -63], [-127, 1], [0, 0]]


@pytest.fixture(scope="module")
def run(tiny_config, tokenizer, tmp_path_factory):
    """The run of a model that learned under rounding which texts are good."""
    keras.utils.set_random_seed(2)
    sizes = {"num_layers": 1, "hidden_dim": 128, "intermediate_dim": 512}
    config = dataclasses.replace(tiny_config, **sizes, initializer_range=0.05)
    model = build_model(config, "classifier", 2)
    fake_quantize(model)
    labels = [int("fine" in text or "좋다" in text) for text in TEXTS]
    train, dev = (Examples(TEXTS[s], None, labels[s]) for s in (slice(48), slice(48, None)))
    run = RunFolder(tmp_path_factory.mktemp("run"), {})
    training = TrainingConfig(epochs=8, batch_size=8, learning_rate=2e-3)
    data = Splits(train, dev, LENGTH)
    FineTuning(Classification(LABELS), model, tokenizer, data, config=training, run=run).run_all()
    return run


@pytest.fixture(scope="module")
def model(run):
    return load_model(run.best, "classifier")


@pytest.fixture(scope="module")
def export(model, tokenizer, tmp_path_factory):
    """Gives the file of the model in a quantization, which is made once."""
    folder = tmp_path_factory.mktemp("files")

    def export(quantization):
        path = folder / f"{quantization}.tflite"
        if not path.exists():
            export_tflite(model, path, tokenizer, LABELS, Export(quantization, LENGTH))
        return path

    return export


def dense_layers(path):
    """The operator, input and weights of each dense layer of a file."""
    tree = tree_of(path)
    for graph in tree.subgraphs:
        for operator in graph.operators:
            code = tree.operatorCodes[operator.opcodeIndex].builtinCode
            if code == schema.BuiltinOperator.FULLY_CONNECTED:
                yield operator, *(graph.tensors[i] for i in operator.inputs[:2])


def dynamic_products(path):
    """Whether each dense layer of 8-bit weights and float inputs takes these asymmetrically."""
    types = [schema.TensorType.FLOAT32, schema.TensorType.INT8]
    return [
        operator.builtinOptions.asymmetricQuantizeInputs
        for operator, x, weights in dense_layers(path)
        if [x.type, weights.type] == types
    ]


def probabilities(model, tokenizer):
    batches = LengthBatches(tokenizer.encode(TEXTS, max_length=LENGTH), len(TEXTS))
    logits = model(batches.batch(np.arange(len(TEXTS)))[0])["logits"]
    return tf.nn.softmax(logits).numpy()


def of_file(path):
    found = TextClassifier(path).classify(TEXTS)
    return np.array([list(x.probabilities.values()) for x in found])


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_each_quantization_keeps_what_its_bits_can(quantization, model, tokenizer, export):
    if QUANTIZATIONS[quantization].weight_bits < 8:
        pytest.importorskip("litert_quantizer")
    path = export(quantization)
    with in_float(model):
        expected = log_odds(probabilities(model, tokenizer))
    error = np.sqrt(np.mean((log_odds(of_file(path)) - expected) ** 2)) / expected.std()
    weights = sum(np.prod(v.shape) for v in model.trainable_variables)
    most, least, size = BOUNDS[quantization]
    assert least <= error <= most
    assert path.stat().st_size / weights < size
    types = {tensor.type for tensor in weights_of(path)}
    due = {32: "FLOAT32", 16: "FLOAT16", 8: "INT8", 4: "INT4"}
    bits = QUANTIZATIONS[quantization].weight_bits
    assert types == {getattr(schema.TensorType, due[bits])}


def log_odds(probabilities):
    return np.log(probabilities[:, 1] / probabilities[:, 0])


def weights_of(path):
    """The tensors of a file that hold a kernel of its blocks."""
    tree = tree_of(path)
    return [
        x
        for x in tree.subgraphs[0].tensors
        if sorted(x.shape) in ([128, 128], [128, 512]) and tree.buffers[x.buffer].data is not None
    ]


def test_trained_under_rounding_a_model_is_its_file(run, model, tokenizer, export):
    with safe_open(run.state_path, "np") as f:  # to resume from
        saved = {name for name in f.keys() if "_range/" in name}  # noqa: SIM118
    assert len(saved) == 2 * len(get_ranges(model)) > 20
    expected = log_odds(probabilities(model, tokenizer))
    found = log_odds(of_file(export("static_int8")))
    error = np.abs(found - expected) / expected.std()
    assert error.max() < 0.02
    assert np.mean(error < 1e-4) > 0.7  # to the last bit
    assert np.array_equal(found > 0, expected > 0)


def test_a_keras_file_of_a_model_in_float_does_not_round(model, tmp_path):
    with in_float(model):
        model.save(tmp_path / "float.keras")
    assert get_ranges(keras.models.load_model(tmp_path / "float.keras")) == {}


def test_calibrated_on_texts_a_file_is_close_too(model, tokenizer, tmp_path):
    path = tmp_path / "model.tflite"
    before = get_ranges(model)
    how = {"calibration_text": TEXTS[:32]}
    export_tflite(model, path, tokenizer, LABELS, Export("static_int8", LENGTH, **how))
    assert get_ranges(model) == before  # calibration is of a copy
    with in_float(model):
        expected = log_odds(probabilities(model, tokenizer))
    error = np.sqrt(np.mean((log_odds(of_file(path)) - expected) ** 2)) / expected.std()
    assert error < 0.01


def test_an_export_calibrates_on_encoded_pairs(model, tokenizer, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(tflite, "calibrate", lambda model, *given: seen.append(given) or model)
    monkeypatch.setattr(tflite, "convert_text_model", lambda *_: 1 / 0)  # as far as this goes
    pairs = [(text, TEXTS[0]) for text in TEXTS[:16]]
    with pytest.raises(ZeroDivisionError):
        options = Export("static_int8", LENGTH, calibration_text=pairs)
        export_tflite(model, tmp_path / "m", tokenizer, LABELS, options)
    ((encodings, _),) = seen
    expected = tokenizer.encode(TEXTS[:16], TEXTS[:1] * 16, max_length=LENGTH)
    np.testing.assert_array_equal(encodings.token_ids, expected.token_ids)
    assert encodings.segment_ids.any()
    # What each task's file holds, as its model reads it.
    asked = Inputs(["who ?", "where ?"], ["a film", "b film"])
    assert asked.flat_texts() == [("who ?", "a film"), ("where ?", "b film")]
    begun = Inputs(["he", "she"], [["ate", "slept"], ["ran"]])
    assert begun.flat_texts() == [("he", "ate"), ("he", "slept"), ("she", "ran")]
    assert Inputs(["a film", ["b", "film"]]).flat_texts() == ["a film", " b film"]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "litert_quantizer", None)
    with pytest.raises(InputError, match=r"quantization='int4' needs litert_quantizer"):
        check_quantization("int4")


def test_a_unit_far_above_all_others_does_not_round_them_away(tiny_config, tokenizer, tmp_path):
    """As of MiniLM-L6, one of whose tensors ranges from -3.5 to 194 (mean size 0.2)."""
    keras.utils.set_random_seed(2)
    sizes = {"num_layers": 1, "hidden_dim": 128, "intermediate_dim": 512}
    model = build_model(dataclasses.replace(tiny_config, **sizes))
    weights = {v.path: v for v in model.weights}
    bias, gamma = np.zeros(128, "float32"), np.full(128, 20.0, "float32")
    bias[:2], gamma[:2] = (400.0, -400.0), 0.0
    weights["encoder_0/feed_forward/output/bias"].assign(bias)
    weights["encoder_0/feed_forward_norm/gamma"].assign(gamma)
    # What the network gives, some 0.1, and not what goes past it, is what counts.
    for name, factor in (("attention_norm/gamma", 0.05), ("feed_forward/intermediate/kernel", 20)):
        weights[f"encoder_0/{name}"].assign(weights[f"encoder_0/{name}"] * factor)
    kernel = weights["encoder_0/feed_forward/output/kernel"]
    kernel.assign(kernel * 0.02)
    path = tmp_path / "model.tflite"
    how = {"pooling": "mean", "calibration_text": TEXTS[:32], "check_inputs": Inputs(TEXTS)}
    export_tflite(model, path, tokenizer, None, Export("static_int8", LENGTH, **how))
    assert read_files(path)[0]["check"]["cosine"] > 0.99
    kernels = [tensor for tensor in weights_of(path) if sorted(tensor.shape) == [128, 512]]
    assert {tensor.type for tensor in kernels} == {schema.TensorType.INT8}
    # Inputs have a zero point of their own: what a GELU gives is of one sign, but for little.
    assert dynamic_products(path) == [True]
    # The layer with the outlier takes and gives float32, with weights in 8 bits.
    assert floats_of(path) == {(128, 512)}
    count = sum(np.prod(v.shape) for v in model.trainable_variables)
    assert path.stat().st_size / count < 1.4


def floats_of(path):
    """The shapes of the weights of the products of a file that take float32."""
    return {
        tuple(map(int, weights.shape))
        for _, x, weights in dense_layers(path)
        if x.type == schema.TensorType.FLOAT32
    }
