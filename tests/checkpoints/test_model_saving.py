"""Saving of models as folders."""

import numpy as np
import pytest
import safetensors.numpy

from tests.checkpoints.stored_tensors import tensors_of
from tests.models.small import sizes
from tfnlp.checkpoints import load_model, read_labels, save_model
from tfnlp.models import DistilBertConfig, Gpt2Config, build_model
from tfnlp.text import train_tokenizer
from tfnlp.utils.errors import InputError

SIZES = sizes(num_layers=1)


def test_round_trip_gives_the_same_weights(saved):
    before = tensors_of(saved)
    save_model(load_model(saved, "classifier"), saved)
    for name, value in tensors_of(saved).items():
        np.testing.assert_array_equal(value, before[name])
    assert read_labels(saved) == ["LABEL_0", "LABEL_1"]


def test_a_full_disk_leaves_the_old_file_whole(saved, monkeypatch):
    before = (saved / "model.safetensors").read_bytes()

    def full(tensors, path, metadata=None):
        with open(path, "wb") as file:
            file.write(b"half")
        raise OSError(28, "No space left on device")

    model = load_model(saved, "classifier")
    monkeypatch.setattr(safetensors.numpy, "save_file", full)
    with pytest.raises(InputError, match=r"model\.safetensors could not be written \(No space"):
        save_model(model, saved)
    assert (saved / "model.safetensors").read_bytes() == before
    assert not [p for p in saved.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (DistilBertConfig(layer_norm_epsilon=1e-5, **SIZES), "layer_norm_epsilon=1e-05"),
        (Gpt2Config(num_segments=2, **SIZES), "num_segments=2"),
    ],
)
def test_fields_that_config_json_lacks_are_refused(config, field, tmp_path):
    with pytest.raises(InputError, match=f"has no field for {field} .read back as"):
        save_model(build_model(config), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_that_the_model_cannot_read_leaves_the_folder_as_it_is(saved, tiny_config):
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    tokenizer, _ = train_tokenizer(["a fine film"], "unigram", 60, "xlnet")
    with pytest.raises(InputError, match="family 'bert' and the tokenizer one for 'xlnet'"):
        save_model(build_model(tiny_config, "classifier", 3), saved, tokenizer=tokenizer)
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before
