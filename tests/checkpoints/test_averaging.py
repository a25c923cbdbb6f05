"""Means of the weights of models."""

import json

import numpy as np
import pytest

from tfnlp.checkpoints import average_folders, load_model, save_model
from tfnlp.models import build_model
from tfnlp.utils.errors import InputError


@pytest.fixture(scope="module")
def folders(tmp_path_factory, one_layer, tokenizer):
    place, models = tmp_path_factory.mktemp("models"), []
    for number in range(3):
        models.append(build_model(one_layer, "classifier", 2))
        save_model(models[-1], place / f"{number}", ["a", "b"], tokenizer)
    return place, models


def test_the_mean_loads_with_tokenizer_and_labels(folders, tmp_path):
    place, models = folders
    average_folders([place / f"{number}" for number in range(3)], tmp_path / "mean")
    mean = load_model(tmp_path / "mean", "classifier")
    weights = zip(*(model.get_weights() for model in models), strict=True)
    for found, values in zip(mean.get_weights(), weights, strict=True):
        np.testing.assert_allclose(found, np.mean(values, 0, dtype="float64"), atol=1e-7)
    assert json.loads((tmp_path / "mean/config.json").read_text())["id2label"]["1"] == "b"
    assert (tmp_path / "mean/vocab.txt").exists()
    with pytest.raises(InputError, match=r"config\.json is there"):
        average_folders([place / "0", place / "1"], tmp_path / "mean")


def test_other_models_are_refused(folders, tmp_path, tiny_config):
    place, _ = folders
    save_model(build_model(tiny_config, "classifier", 2), tmp_path / "deeper", ["a", "b"])
    with pytest.raises(InputError, match=r"deeper/config.json differs from that of"):
        average_folders([place / "0", tmp_path / "deeper"], tmp_path / "mean")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/config.json").write_text((place / "0/config.json").read_text())
    with pytest.raises(InputError, match="cannot be read"):
        average_folders([place / "0", tmp_path / "empty"], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()
