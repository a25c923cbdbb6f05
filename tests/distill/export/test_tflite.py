import dataclasses
import json
import zipfile

import keras
import numpy as np
import pytest

from distill.export.mediapipe import mediapipe_differences
from distill.export.metadata import METADATA_NAME
from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import TextClassifier
from tests.distill.expected import keras_probabilities, tree_of
from tfnlp.models import build_model
from tfnlp.text import WordPieceTokenizer
from tfnlp.utils.errors import InputError

LABELS = ["bad", "good", "싫다"]
TEXTS = ["a fine film", "", "정말 좋다 !", "unbelievable 🙂 zzz", "x " * 300]


@pytest.fixture(scope="module")
def wide(tiny_config, tokenizer, tmp_path_factory):
    """A model and its file in 8 bits."""
    config = dataclasses.replace(
        tiny_config, num_layers=1, hidden_dim=128, intermediate_dim=512, initializer_range=0.1
    )
    model = build_model(config, "classifier", 3)
    path = tmp_path_factory.mktemp("files") / "model.tflite"
    found = export_tflite(model, path, tokenizer, LABELS, Export(max_length=20))
    assert found == mediapipe_differences(tokenizer)
    return model, path


@pytest.fixture
def model(tiny_config):
    return build_model(tiny_config, "classifier", 3)


def test_file_gives_the_models_probabilities(wide, tokenizer):
    model, path = wide
    found = TextClassifier(path).classify(TEXTS)
    expected = keras_probabilities(model, tokenizer, TEXTS, 20)
    for answer, row in zip(found, expected, strict=True):
        assert list(answer.probabilities) == LABELS
        np.testing.assert_allclose(list(answer.probabilities.values()), row, atol=0.02)
        assert answer.label == max(answer.probabilities, key=answer.probabilities.get)
    assert [answer.truncated for answer in found] == [False, False, False, False, True]


def test_a_model_is_saved_and_copied_after_an_export(wide, tmp_path, random_inputs):
    model, _ = wide
    inputs = random_inputs(2, 8, model.text_config.vocabulary_size)
    expected = model(inputs)["logits"]
    model.save(tmp_path / "model.keras")
    saved = keras.models.load_model(tmp_path / "model.keras")
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    for other in (saved, copy):
        np.testing.assert_array_equal(other(inputs)["logits"], expected)


def test_int8_keeps_small_rows_beside_large_ones(tiny_config, tokenizer, tmp_path):
    config = dataclasses.replace(tiny_config, num_layers=1, hidden_dim=64)
    model = build_model(config, "classifier", 3)
    layer = model.get_layer("embeddings")
    table = layer.token_table.numpy()
    # "fine" and "film": with one scale for all rows, or for the scales of all, the rest vanish.
    table[6:8] *= 10_000
    layer.token_table.assign(table)
    path = tmp_path / "model.tflite"
    export_tflite(model, path, tokenizer, LABELS, Export("int8"))
    rows, scales = embedding_table(path, table.shape)
    np.testing.assert_allclose(scales, np.abs(table).max(axis=1) / 127, rtol=1e-6)
    assert np.all(np.abs(rows - table) <= scales[:, None] / 2 * 1.001)
    texts = ["the plot is dull .", "a fine film", "정말 지루하다", "not the plot , is it !"]
    found = [list(a.probabilities.values()) for a in TextClassifier(path).classify(texts)]
    np.testing.assert_allclose(found, keras_probabilities(model, tokenizer, texts), atol=0.02)


def embedding_table(path, shape):
    """The embeddings that a file holds, as floats, and the scales of its rows."""
    tree = tree_of(path)
    (tensor,) = [
        x
        for x in tree.subgraphs[0].tensors
        if tuple(x.shape) == shape and tree.buffers[x.buffer].data is not None
    ]
    rows = np.array(tree.buffers[tensor.buffer].data, "uint8").view("int8").reshape(shape)
    scales = np.array(tensor.quantization.scale)
    return rows * scales[:, None], scales


def test_file_has_named_inputs_no_flex_ops_and_metadata(wide, tokenizer):
    path = wide[1]
    tree = tree_of(path)
    assert not [code.customCode for code in tree.operatorCodes if code.customCode]
    signature = tree.signatureDefs[0]
    names = {x.name.decode(): x.tensorIndex for x in signature.inputs}
    assert set(names) == {"ids", "mask", "segment_ids"}
    for index in names.values():
        assert tree.subgraphs[0].tensors[index].shapeSignature.tolist() == [1, -1]
    (metadata,) = [m for m in tree.metadata if m.name.decode() == METADATA_NAME]
    buffer = bytes(tree.buffers[metadata.buffer].data)
    assert buffer[4:8] == b"M001"
    order = sorted(names, key=lambda n: tree.subgraphs[0].inputs.tolist().index(names[n]))
    places = [buffer.index(b"\0" + n.encode() + b"\0") for n in order]
    assert len(set(places)) == 3
    with zipfile.ZipFile(path) as archive:
        assert archive.read("vocab.txt").decode().split("\n") == tokenizer.vocabulary
        assert archive.read("labels.txt").decode().split("\n") == LABELS
        settings = json.loads(archive.read("tokenizer_config.json"))
        assert all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())
    assert settings["model_max_length"] == 20
    assert settings["strip_accents"] is False


def test_the_same_model_gives_the_same_file(wide, tokenizer, tmp_path, caplog):
    model, path = wide
    export_tflite(model, tmp_path / "again", tokenizer, LABELS, Export(max_length=20))
    # The differences of MediaPipe in one line, however many there are.
    assert caplog.text.count("MediaPipe") == 1 and "(docs/mobile.md)" in caplog.text
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": Export("int3")}, "quantization=int3"),
        ({"options": Export(max_length=49)}, "max_length=49"),
        ({"options": Export(max_length=2)}, "max_length=2"),
        ({"labels": ["a", "b"]}, "3 classes"),
        ({"labels": ["a", "b", "a"]}, "3 classes"),
        ({"labels": ["a", "b\n", "c"]}, "line breaks"),
        ({"tokenizer": WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])}, "has 4 tokens"),
    ],
)
def test_bad_arguments_are_named(changes, message, model, tokenizer, tmp_path):
    arguments = {"tokenizer": tokenizer, "labels": LABELS, "options": Export()} | changes
    with pytest.raises(InputError, match=message):
        export_tflite(model, tmp_path / "m", **arguments)
    assert not (tmp_path / "m").exists()


def test_a_model_in_half_precision_is_refused(tiny_config, tokenizer, tmp_path):
    keras.config.set_dtype_policy("mixed_float16")
    half = build_model(tiny_config, "classifier", 3)
    message = r"computes in float16 \(mixed_float16\), but .* in float32; save"
    with pytest.raises(InputError, match=message):
        export_tflite(half, tmp_path / "m", tokenizer, LABELS)
    assert not (tmp_path / "m").exists()
