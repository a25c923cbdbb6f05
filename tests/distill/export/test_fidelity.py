"""What an export says of a file beside the Keras model, and the golden answers of it."""

import dataclasses

import keras
import numpy as np
import pytest

from distill.export import fidelity
from distill.export.fidelity import compare, describe, file_card, float_reference
from distill.export.mediapipe import ONE_TEXT
from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import load_runner
from distill.runtime.associated_files import read_files
from tests.distill.conftest import HEADS, INPUTS, SETTINGS, TEXTS
from tests.distill.expected import keras_outputs
from tfnlp.checkpoints import load_model
from tfnlp.configs import VectorHead
from tfnlp.models import build_model, with_vectors
from tfnlp.pipelines import Inputs, predict_inputs, prediction_task
from tfnlp.utils.errors import InputError


@pytest.mark.parametrize("kind", HEADS)
def test_a_float_file_is_its_model(kind, folders, files, tokenizer):
    head, _, labels = HEADS[kind]
    model = load_model(folders[kind], head)
    settings = SETTINGS.get(kind, {}) | {"max_length": 24}
    with float_reference(model, tokenizer, labels=labels, settings=settings) as reference:
        runner = load_runner(files[kind])
        figures = compare(runner, reference, INPUTS[kind])
    assert bool(runner.settings.get("pairs")) == (kind in ("chooser", "answerer"))
    assert figures.pop("texts") == 5
    if kind == "scorer":
        assert figures["correlation"] == pytest.approx(1, abs=1e-5)
        assert figures["largest_difference"] < 1e-5
    else:
        assert figures == {"agreement": 1.0}


@pytest.mark.parametrize(
    ("kind", "figures", "warns"),
    [
        ("classifier", {"agreement": 0.98}, False),
        ("tagger", {"agreement": 0.979}, True),
        ("scorer", {"correlation": 0.99, "largest_difference": 1.0}, False),
        ("scorer", {"correlation": None, "largest_difference": 0.0}, True),
        ("embedder", {"cosine": 0.99, "least_cosine": 0.5}, False),
        ("embedder", {"cosine": 0.989, "least_cosine": 0.989}, True),
    ],
)
def test_a_large_loss_is_warned_of_with_its_figures(kind, figures, warns, caplog):
    figures = {"texts": 3} | figures
    fidelity.warn(kind, figures, "int4")
    assert (describe(kind, figures) in caplog.text) == warns
    assert (" int8 or float16 lose less." in caplog.text) == warns
    caplog.clear()
    fidelity.warn(kind, figures, "int8")
    assert "lose less" not in caplog.text


def test_a_card_tells_what_is_known_of_a_file(tmp_path, monkeypatch):
    path, settings = tmp_path / "model.tflite", {"kind": "classifier", "model_max_length": 24}
    path.write_bytes(bytes(20_000))
    check = {"texts": 5, "agreement": 0.8}
    shown = {}
    for name, more in (("few", {}), ("many", {"check": check, "task": {"pairs": True}})):
        monkeypatch.setattr(fidelity, "read_files", lambda _, more=more: (settings | more, {}))
        differences = ["Otherwise."] if name == "many" else []
        shown[name] = file_card(path, {"name": "m", "author": None}, differences)
        for row in ("name | m", "kind | classifier", "most tokens | 24", "size | 0.02 MB"):
            assert f"| {row} |\n" in shown[name]
        assert "author" not in shown[name]
    assert "single texts" in shown["few"] and "pairs of texts" in shown["many"]
    assert "Not compared" in shown["few"] and describe("classifier", check) in shown["many"]
    assert "runtimes" not in shown["few"] and "- Otherwise." in shown["many"]


def test_an_export_stores_its_comparison_with_the_model(
    tiny_config, tokenizer, files, tmp_path, monkeypatch, caplog
):
    keras.utils.set_random_seed(0)
    model = build_model(dataclasses.replace(tiny_config, num_layers=1))
    path = tmp_path / "model.tflite"
    how = {"quantization": "int8", "pooling": "mean", "max_length": 24}
    monkeypatch.setattr(type(prediction_task("embedder")), "least", 1.0)
    export_tflite(model, path, tokenizer, options=Export(**how, check_inputs=Inputs(TEXTS)))
    check = read_files(path)[0]["check"]
    given = load_runner(path).embed(TEXTS)
    settings = {"max_length": 24}
    embedder = with_vectors(model, VectorHead())
    with float_reference(embedder, tokenizer, settings=settings) as reference:
        cosines = (given * reference.embed(TEXTS)).sum(1)
    assert check == {
        "texts": 5,
        "cosine": pytest.approx(cosines.mean()),
        "least_cosine": pytest.approx(cosines.min()),
    }
    assert 0.9 < check["least_cosine"] < check["cosine"] < 1 - 1e-6
    sentence = describe("embedder", check)
    assert sentence == (
        f"On 5 texts, compared with float32 Keras: cosine {cosines.mean():.4f} in the mean, "
        f"{cosines.min():.4f} at worst."
    )
    assert sentence.encode() in path.read_bytes()  # the description in the metadata
    assert f"\n{sentence}\n" in file_card(path, {})
    assert "loses much" in caplog.text
    assert "check" not in read_files(files["classifier"])[0]


def test_the_reference_pools_as_the_file_does(tiny_config, tokenizer):
    keras.utils.set_random_seed(0)
    model = build_model(dataclasses.replace(tiny_config, num_layers=1))
    for pooling, pooled in (("mean", lambda x: x.mean(0)), ("first", lambda x: x[0])):
        embedder = with_vectors(model, VectorHead((pooling,)))
        with float_reference(embedder, tokenizer) as reference:
            rows = reference.embed(TEXTS)
        for text, row in zip(TEXTS, rows, strict=True):
            outputs = keras_outputs(model, tokenizer.encode([text])[0])
            vector = pooled(outputs["sequence_output"])
            np.testing.assert_allclose(row, vector / np.linalg.norm(vector), atol=1e-5)


def test_a_file_of_pairs_refuses_single_texts(folders, tokenizer, tmp_path):
    head, _, labels = HEADS["classifier"]
    model, path = load_model(folders["classifier"], head), tmp_path / "model.tflite"
    assert ONE_TEXT in export_tflite(model, path, tokenizer, labels, task_settings={"pairs": True})
    assert b" a pair of texts " in path.read_bytes()
    runner = load_runner(path)
    with float_reference(model, tokenizer, labels=labels, settings={"pairs": True}) as other:
        for side in (runner, other):
            with pytest.raises(InputError, match=r"^The model was trained on pairs of texts, "):
                predict_inputs(side, Inputs(TEXTS))
            assert len(predict_inputs(side, Inputs(TEXTS, TEXTS))) == 5
    assert "| reads | pairs of texts |" in file_card(path, {})


def test_a_string_input_and_a_pooling_take_no_pairs(folders, tokenizer, tmp_path):
    model, path = load_model(folders["classifier"], "classifier"), tmp_path / "model.tflite"
    of_pairs = {"labels": ["bad", "good"], "task_settings": {"pairs": True}}
    with pytest.raises(InputError, match=r"^tokenizer_in_graph=True takes one string, and the "):
        export_tflite(model, path, tokenizer, options=Export(tokenizer_in_graph=True), **of_pairs)
    assert not path.exists()
    of_pairs["task_settings"]["thresholds"] = [0.5, 0.5]
    said = export_tflite(model, path, tokenizer, options=Export(pooling="mean"), **of_pairs)
    assert ONE_TEXT not in said and load_runner(path).settings == {}
