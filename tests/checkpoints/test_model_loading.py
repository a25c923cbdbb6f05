"""Loading of models from folders."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.checkpoints.stored_tensors import tensors_of
from tfnlp.checkpoints import load_model, save_model
from tfnlp.layers import fake_quantize, get_ranges, set_ranges
from tfnlp.models import BertConfig, build_model
from tfnlp.quantization.fake_quantization import count_parameters, in_float
from tfnlp.utils.errors import InputError


def test_a_new_head_starts_fresh_where_the_number_of_classes_differs(saved):
    model = load_model(saved, "classifier", num_classes=5)
    assert model.output["logits"].shape == (None, 5)
    kernel = next(w for w in model.weights if w.path == "encoder_0/attention/query/kernel")
    stored = tensors_of(saved)["bert.encoder.layer.0.attention.self.query.weight"]
    np.testing.assert_array_equal(kernel, stored.T)


def test_ranges_come_with_what_was_trained_under_them_alone(saved):
    model = load_model(saved, "classifier")
    fake_quantize(model)
    ranges = {name: [-2.0, 3.0] for name in get_ranges(model)}
    set_ranges(model, ranges)
    save_model(model, saved)
    assert get_ranges(load_model(saved, "classifier")) == ranges
    assert get_ranges(load_model(saved)) == ranges
    assert get_ranges(load_model(saved, "classifier", num_classes=5)) == {}
    assert get_ranges(load_model(saved, "tagger", num_classes=2)) == {}
    with in_float(model):
        save_model(model, saved)
    assert get_ranges(load_model(saved, "classifier")) == {}
    assert count_parameters(model) == load_model(saved, "classifier").count_params()
    model = build_model(model.text_config, "masked_lm")
    fake_quantize(model)
    save_model(model, saved)
    encoder = load_model(saved)  # without lm_transform, and its pooler is new
    blocks = {f"encoder_{i}" for i in range(model.text_config.num_layers)}
    assert {name.partition("/")[0] for name in get_ranges(encoder)} == blocks
    assert encoder.get_layer("embeddings").is_fake_quantized


def test_a_missing_head_is_refused(tmp_path, tiny_config):
    save_model(build_model(tiny_config, "tagger", 3), tmp_path / "tagger")
    message = "has no classifier head; give num_classes to start a new one"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "tagger", "classifier")
    assert load_model(tmp_path / "tagger", "classifier", 3).output["logits"].shape == (None, 3)


MEASURE = """
import pathlib, sys
from tfnlp.checkpoints import load_model
from tfnlp.models import BertConfig, build_model

def memory(kind):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(kind)).split()[1]) * 1024

build_model(BertConfig(10, 1, 2, 8, 8))  # what TensorFlow needs once
before = memory("VmRSS")
load_model(sys.argv[1])
print((memory("VmHWM") - before) / pathlib.Path(sys.argv[1], "model.safetensors").stat().st_size)
"""


def test_loading_takes_little_more_memory_than_the_weights(tmp_path):
    if not pathlib.Path("/proc/self/status").exists():
        pytest.skip("the peak of a process's memory is read from /proc")
    save_model(build_model(BertConfig(vocabulary_size=10000, num_layers=8)), tmp_path)
    command = [sys.executable, "-c", MEASURE, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert 0.9 < float(done.stdout.splitlines()[-1]) < 1.3
