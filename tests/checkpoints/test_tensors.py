"""Files of tensors, whole, in shards, broken."""

import json

import numpy as np
import pytest
import safetensors.numpy

from tests.checkpoints.stored_tensors import tensors_of
from tfnlp.checkpoints import load_model
from tfnlp.checkpoints.tensors import TensorReader
from tfnlp.utils.errors import InputError


def test_loads_shards(saved, random_inputs, tiny_config):
    expected = load_model(saved, "classifier")
    tensors = tensors_of(saved)
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        safetensors.numpy.save_file({n: tensors[n] for n in part}, saved / file)
    (saved / "model.safetensors").unlink()
    weight_map = {n: file for file, part in parts.items() for n in part}
    index = saved / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    assert TensorReader(saved).size() == sum((saved / file).stat().st_size for file in parts)
    inputs = random_inputs(2, 5, tiny_config.vocabulary_size)
    np.testing.assert_array_equal(
        load_model(saved, "classifier")(inputs)["logits"], expected(inputs)["logits"]
    )
    (saved / "b.safetensors").unlink()
    with pytest.raises(InputError, match=r"b\.safetensors is not a whole safetensors file"):
        load_model(saved)


@pytest.mark.parametrize("change", [lambda b: b[: len(b) // 2], lambda b: b""])
def test_broken_files_are_named(change, saved):
    path = saved / "model.safetensors"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=f"{path} is not a whole safetensors file"):
        load_model(saved)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("adapter_config.json", "adapter"),
        ("bert_model.ckpt.index", "TensorFlow 1"),
        ("model.onnx", "ONNX"),
        ("flax_model.msgpack", "Flax"),
        ("pytorch_model.bin", "convert it"),
        ("notes.txt", "has no"),
    ],
)
def test_a_folder_without_weights_is_said_to_be_what_it_is(saved, file, said):
    (saved / "model.safetensors").unlink()
    (saved / file).write_text("{}")
    with pytest.raises(InputError, match=said):
        load_model(saved)
    if file not in ("notes.txt", "pytorch_model.bin"):
        (saved / "config.json").unlink()
        with pytest.raises(InputError, match=said):
            load_model(saved)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_named(saved, value):
    tensors = {name: np.array(tensor) for name, tensor in tensors_of(saved).items()}
    name = min(tensors)
    tensors[name].flat[0] = value
    safetensors.numpy.save_file(tensors, saved / "model.safetensors")
    with pytest.raises(InputError, match=f"tensor {name} has values that are not finite"):
        TensorReader(saved).read(name)


@pytest.mark.parametrize(
    "index",
    ["{}", '{"weight_map": []}', '{"weight_map": {"a": "../b"}}', '{"weight_map": {"a": 1}}'],
)
def test_an_index_without_files_of_the_folder_is_refused(saved, index):
    (saved / "model.safetensors").unlink()
    (saved / "model.safetensors.index.json").write_text(index)
    with pytest.raises(InputError, match="weight_map must map"):
        TensorReader(saved)
