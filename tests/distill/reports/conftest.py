"""A small int8 classifier as a file."""

import pytest

from distill.export.options import Export
from distill.export.tflite import export_tflite
from tfnlp.models import build_model


@pytest.fixture(scope="module")
def file(tiny_config, tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "model.tflite"
    model = build_model(tiny_config, "classifier", 2)
    export_tflite(model, path, tokenizer, ["bad", "good"], Export("int8", max_length=40))
    return path
