"""Adapters as `peft` writes and reads them, by the formula of the paper."""

import json

import numpy as np
import pytest
import safetensors.numpy

from tests.checkpoints.stored_tensors import tensors_of
from tests.models.small import sizes
from tfnlp.checkpoints import load_model, merge_adapter, save_model
from tfnlp.configs import config_by_name
from tfnlp.models import build_model
from tfnlp.training import add_lora
from tfnlp.utils.errors import InputError

QUERY = "bert.encoder.layer.0.attention.self.query"


def draw(variables, seed=0):
    rng = np.random.default_rng(seed)
    for variable in variables:
        variable.assign(rng.normal(0, 0.3, variable.shape))


def write_adapter(folder, tensors, **fields):
    folder.mkdir()
    prefixed = {f"base_model.model.{name}": x.astype("float32") for name, x in tensors.items()}
    safetensors.numpy.save_file(prefixed, folder / "adapter_model.safetensors")
    fields = {"peft_type": "LORA", "r": 2, "lora_alpha": 6} | fields
    (folder / "adapter_config.json").write_text(json.dumps(fields), encoding="utf-8")


@pytest.mark.parametrize(
    ("family", "head", "layers"),
    [
        ("bert", "classifier", ("query", "value")),
        ("albert", "tagger", ("all",)),
        ("deberta", "answerer", ("joint", "intermediate")),
        ("gpt2", "causal_lm", ("query", "value")),
        ("modernbert", "classifier", ("key", "feed_forward/output")),
    ],
)
def test_an_adapter_is_what_training_changed(family, head, layers, tmp_path):
    config = config_by_name(family, **sizes(pad_token_id=0))
    base = build_model(config, head, 3 if head in ("classifier", "tagger") else None)
    save_model(base, tmp_path / "base")
    model = load_model(tmp_path / "base", head)
    add_lora(model, 2, layers)
    for layer in model._flatten_layers():
        if getattr(layer, "lora_enabled", False):
            layer.lora_alpha = 3
    draw(model.trainable_variables)
    save_model(model, tmp_path / "merged")
    merged, before = tensors_of(tmp_path / "merged"), tensors_of(tmp_path / "base")
    adapter = tmp_path / "merged" / "adapter"
    fields = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    assert fields["base_model_name_or_path"] == str(tmp_path / "base")
    tensors = safetensors.numpy.load_file(adapter / "adapter_model.safetensors")
    tensors = {name.removeprefix("base_model.model."): x for name, x in tensors.items()}
    expected = dict(before)
    for module in fields["target_modules"]:
        a, b = (tensors.pop(f"{module}.lora_{factor}.weight") for factor in "AB")
        assert len(a) == fields["r"]
        change = fields["lora_alpha"] / fields["r"] * b @ a  # (out, in)
        name = f"{module}.weight"
        expected[name] = before[name] + (change.T if fields["fan_in_fan_out"] else change)
    modules = tuple(fields["modules_to_save"] or ())
    assert all(name.startswith(modules) for name in tensors)
    expected |= tensors
    assert merged.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(merged[name], value, atol=1e-6, err_msg=name)
    assert {name for name in before if (merged[name] != before[name]).any()} == {
        *(f"{module}.weight" for module in fields["target_modules"]),
        *tensors,
    }
    base = load_model(tmp_path / "base", head)
    merge_adapter(base, adapter)
    save_model(base, tmp_path / "again")
    for name, value in tensors_of(tmp_path / "again").items():
        np.testing.assert_allclose(value, merged[name], atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("fields", "scale"),
    [({}, 3), ({"use_rslora": True}, 6 / 2**0.5), ({"alpha_pattern": {"layer.0.*query": 1}}, 0.5)],
)
def test_an_adapter_of_peft_is_scaled_as_it_says(fields, scale, saved, tmp_path):
    rng = np.random.default_rng(0)
    a, b, head = rng.normal(size=(2, 32)), rng.normal(size=(32, 2)), rng.normal(size=(2, 32))
    tensors = {f"{QUERY}.lora_A.weight": a, f"{QUERY}.lora_B.weight": b, "classifier.weight": head}
    write_adapter(tmp_path / "adapter", tensors, **fields)
    model, before = load_model(saved, "classifier"), tensors_of(saved)
    merge_adapter(model, tmp_path / "adapter")
    save_model(model, tmp_path / "merged")
    merged = tensors_of(tmp_path / "merged")
    changed = {name for name in before if (merged[name] != before[name]).any()}
    assert changed == {f"{QUERY}.weight", "classifier.weight"}
    change = merged[f"{QUERY}.weight"] - before[f"{QUERY}.weight"]
    np.testing.assert_allclose(change, scale * b @ a, atol=1e-4)
    np.testing.assert_allclose(merged["classifier.weight"], head, atol=1e-6)


@pytest.mark.parametrize(
    ("tensors", "fields", "said"),
    [
        ({}, {"peft_type": "IA3"}, "peft_type='IA3'"),
        ({}, {"init_lora_weights": "pissa_niter_4"}, "init_lora_weights='pissa_niter_4'"),
        ({}, {"alora_invocation_tokens": [7]}, r"alora_invocation_tokens=\[7\]"),
        ({"score.bias": (3,), "bert.norm.weight": (3,)}, {}, "bert.norm.weight has no place"),
        ({f"{QUERY}.lora_magnitude_vector": (3,)}, {}, "not of plain LoRA"),
        ({"classifier.weight": (5, 32)}, {}, r"shape \(5, 32\), but the model's is \(2, 32\)"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(tensors, fields, said, saved, tmp_path):
    zeros = {name: np.zeros(shape) for name, shape in tensors.items()}
    write_adapter(tmp_path / "adapter", zeros, **fields)
    with pytest.raises(InputError, match=said):
        merge_adapter(load_model(saved, "classifier"), tmp_path / "adapter")


@pytest.mark.parametrize(
    ("family", "prepare"),
    [("bert", lambda model: None), ("xlnet", lambda model: add_lora(model, 2))],
    ids=["all_trains", "no_linear_layers"],
)
def test_no_adapter_is_written_that_lacks_what_trained(family, prepare, tmp_path):
    model = build_model(config_by_name(family, **sizes()), "classifier", 2)
    prepare(model)
    if family == "bert":
        model.get_layer("encoder_0").attention.query.enable_lora(2)
    save_model(model, tmp_path)
    assert not (tmp_path / "adapter").exists()
