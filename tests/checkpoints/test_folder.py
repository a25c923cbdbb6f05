import json

import numpy as np
import pytest
import safetensors.numpy

from tfnlp.checkpoints import load_model, read_config, read_labels, save_model
from tfnlp.layers import fake_quantize, get_ranges, set_ranges
from tfnlp.models import DistilBertConfig, Gpt2Config, XLNetConfig, build_model
from tfnlp.quantization.fake_quantization import count_parameters, in_float
from tfnlp.text import train_tokenizer
from tfnlp.utils.errors import InputError

SIZES = {
    "vocabulary_size": 10,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
}


@pytest.fixture
def saved(tmp_path, tiny_config, tokenizer):
    model = build_model(tiny_config, "classifier", 2)
    save_model(model, tmp_path, ["bad", "good"], tokenizer)
    return tmp_path


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def rewrite(folder, change):
    """Writes the folder's tensors again after `change(dict)`."""
    tensors = tensors_of(folder)
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


@pytest.mark.quick
def test_round_trip_gives_the_same_weights(saved, tiny_config):
    model = load_model(saved, "classifier")
    again = tensors_of(saved)
    save_model(model, saved)
    for name, value in tensors_of(saved).items():
        np.testing.assert_array_equal(value, again[name])
    assert read_labels(saved) == ["LABEL_0", "LABEL_1"]


def test_loads_without_prefix_with_old_norm_names_and_buffers(saved, random_inputs, tiny_config):
    expected = load_model(saved)

    def change(tensors):
        for name in list(tensors):
            old = name.removeprefix("bert.")
            old = old.replace("LayerNorm.weight", "LayerNorm.gamma")
            tensors[old.replace("LayerNorm.bias", "LayerNorm.beta")] = tensors.pop(name)
        tensors["embeddings.position_ids"] = np.arange(48)

    rewrite(saved, change)
    inputs = random_inputs(2, 5, tiny_config.vocabulary_size)
    np.testing.assert_array_equal(
        load_model(saved)(inputs)["pooled_output"], expected(inputs)["pooled_output"]
    )


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
    inputs = random_inputs(2, 5, tiny_config.vocabulary_size)
    np.testing.assert_array_equal(
        load_model(saved, "classifier")(inputs)["logits"], expected(inputs)["logits"]
    )
    (saved / "b.safetensors").unlink()
    with pytest.raises(InputError, match=r"b\.safetensors is missing"):
        load_model(saved)


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


def test_encoder_alone_is_saved_without_prefix(tmp_path, tiny_config):
    save_model(build_model(tiny_config), tmp_path)
    assert "embeddings.word_embeddings.weight" in tensors_of(tmp_path)
    with pytest.raises(InputError, match="has no classifier head"):
        load_model(tmp_path, "classifier")


QUERY = "bert.encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(QUERY), f"lacks the tensor {QUERY}"),
        (
            lambda t: t.update({QUERY: t[QUERY][:, :3].copy()}),
            r"shape \(32, 3\), but .*\(32, 32\)",
        ),
        (lambda t: t.pop("classifier.bias"), r"head without the tensor classifier\.bias"),
        (lambda t: t.update({"bert.odd": t[QUERY]}), r"1 tensors .* such as bert\.odd"),
    ],
)
def test_wrong_tensors_are_named(change, message, saved):
    rewrite(saved, change)
    with pytest.raises(InputError, match=message):
        load_model(saved, "classifier")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda b: b[: len(b) // 2], "not a whole safetensors file"),
        (lambda b: b"\x80\x04junk" + b[6:], "not a whole safetensors file"),
        (lambda b: b"", "not a whole safetensors file"),
    ],
)
def test_broken_files_are_named(content, message, saved):
    path = saved / "model.safetensors"
    path.write_bytes(content(path.read_bytes()))
    with pytest.raises(InputError, match=message) as error:
        load_model(saved)
    assert str(path) in str(error.value)


def test_pickles_are_refused_with_the_way_to_convert(saved):
    (saved / "model.safetensors").rename(saved / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model\.bin is not safetensors.*convert it"):
        load_model(saved)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "gpt9"}, "model_type='gpt9' is not a supported family"),
        ({"hidden_act": "mish"}, "hidden_act='mish' is not one of"),
        ({"position_embedding_type": "relative_key"}, "only 'absolute' is"),
        ({"num_attention_heads": 5}, "num_heads=5 does not divide"),
    ],
)
def test_configs_of_other_models_are_named(fields, message, saved):
    path = saved / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    with pytest.raises(InputError, match=message):
        load_model(saved)


def test_missing_and_broken_configs_are_named(saved, tmp_path):
    (saved / "config.json").write_text("{")
    with pytest.raises(InputError, match="line 1: not valid JSON"):
        load_model(saved)
    (saved / "config.json").unlink()
    with pytest.raises(InputError, match=r"config\.json is missing"):
        load_model(tmp_path)


def test_a_missing_head_is_told_with_what_is_there(tmp_path, tiny_config):
    save_model(build_model(tiny_config, "tagger", 3), tmp_path / "tagger")
    message = "no classifier head, but is a tagger of the family 'bert'; say num_classes to start"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "tagger", "classifier")
    assert load_model(tmp_path / "tagger", "classifier", 3).output["logits"].shape == (None, 3)
    save_model(build_model(tiny_config), tmp_path / "encoder")
    message = "has no tagger head, but is an encoder of the family 'bert'; say num_classes"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "encoder", "tagger")


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


def test_loading_takes_little_more_memory_than_the_weights(tmp_path):
    import pathlib
    import subprocess
    import sys

    if not pathlib.Path("/proc/self/status").exists():
        pytest.skip("the peak of a process's memory is read from /proc")
    code = """
import pathlib, sys
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import BertConfig, build_model

def memory(kind):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(kind)).split()[1]) * 1024

folder = sys.argv[1]
if sys.argv[2] == "save":
    save_model(build_model(BertConfig(vocabulary_size=10000, num_layers=8)), folder)
else:
    build_model(BertConfig(10, 1, 2, 8, 8))  # what TensorFlow needs once
    before = memory("VmRSS")
    load_model(folder)
    print((memory("VmHWM") - before) / pathlib.Path(folder, "model.safetensors").stat().st_size)
"""
    for step in ("save", "load"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), step],
            check=True,
            capture_output=True,
            text=True,
        )
    assert 0.9 < float(done.stdout.splitlines()[-1]) < 1.3


def test_a_missing_head_starts_from_drawn_weights(saved, caplog):
    with caplog.at_level("INFO", "absl"):
        model = load_model(saved, "tagger", 4)
    (record,) = caplog.records
    assert record.levelname == "INFO"  # no warning, as every fine-tuning starts so
    assert (
        record.getMessage() == f"A new tagger starts on the encoder of {saved}/model.safetensors."
    )
    kernel = model.get_layer("classifier").kernel.numpy()
    assert 0.15 < kernel.std() < 0.25 and 0.4 < np.abs(kernel).max() < 1


def test_weights_that_a_folder_should_have_are_missed(saved, caplog):
    stored = tensors_of(saved)
    rewrite(saved, lambda tensors: [tensors.pop(f"classifier.{n}") for n in ("weight", "bias")])
    load_model(saved, "classifier")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().endswith("so random: classifier.weight, classifier.bias.")
    caplog.clear()
    # The pooler is of the encoder, whose output nothing trains where it is loaded alone.
    names = [name for name in stored if name.startswith("bert.pooler.")]
    rewrite(saved, lambda tensors: [tensors.pop(name) for name in names])
    load_model(saved)
    (record,) = caplog.records
    assert record.levelname == "WARNING" and "pooler.dense.weight" in record.getMessage()


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (DistilBertConfig(layer_norm_epsilon=1e-5, **SIZES), "layer_norm_epsilon=1e-05"),
        (XLNetConfig(attention_dropout=0.0, **SIZES), "attention_dropout=0.0"),
        (Gpt2Config(num_segments=2, **SIZES), "num_segments=2"),
    ],
)
def test_what_a_folder_cannot_say_is_refused(config, field, tmp_path):
    with pytest.raises(InputError, match=f"cannot say {field} .read back as"):
        save_model(build_model(config), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_of_another_family_leaves_the_folder_as_it_is(saved, tiny_config):
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    tokenizer, _ = train_tokenizer(["a fine film"], "bpe", 300, "gpt2")
    with pytest.raises(InputError, match="family 'bert' and the tokenizer one for 'gpt2'"):
        save_model(build_model(tiny_config, "classifier", 3), saved, tokenizer=tokenizer)
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before


@pytest.mark.parametrize("distance", [-1, 0])
def test_a_deberta_without_a_largest_distance_has_that_of_its_table(distance, tmp_path):
    fields = {"model_type": "deberta-v2", "max_position_embeddings": 24, "hidden_size": 32}
    fields |= {"num_attention_heads": 4, "relative_attention": True, "pos_att_type": ["c2p"]}
    fields |= {"max_relative_positions": distance, "position_buckets": distance}
    (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    config = read_config(tmp_path)
    assert (config.max_distance, config.num_buckets, config.max_length) == (24, None, 24)
    fields |= {"max_relative_positions": 1, "position_buckets": -1}
    (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    assert read_config(tmp_path).max_distance == 1
