"""Transformer-XL against numbers recorded from transformers 4.35 (record_transformer_xl_model)."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.parity import record_transformer_xl_dropout as dropout
from tests.parity.compare import check_gradients, near
from tests.parity.record_transformer_xl_model import CASES, SEGMENTS, draw, fields, segments
from tfnlp.checkpoints import load_model, map_of, save_model
from tfnlp.checkpoints.tensors import TensorReader, write_tensors
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json

FOLDER = pathlib.Path(__file__).parent / "recorded"
DROPOUT = json.loads((FOLDER / "transformer_xl_dropout.json").read_text())
RECORDED = np.load(FOLDER / "transformer_xl_model.npz")


def write_folder(folder, case):
    """The checkpoint of a case: what `transformers` would save, tied weights once."""
    shapes = json.loads(str(RECORDED[f"{case}/shapes"]))
    write_tensors(folder / "model.safetensors", {n: draw(n, s) for n, s in shapes.items()})
    write_json(folder / "config.json", fields(case) | {"architectures": ["TransfoXLLMHeadModel"]})
    return shapes


@pytest.mark.parametrize(("case", "rates"), [("adaptive", "states"), ("plain", "attention")])
def test_dropout_makes_states_vary_as_much(case, rates, tmp_path):
    write_folder(tmp_path, case)
    write_json(tmp_path / "config.json", fields(case) | dropout.RATES[rates])
    model = load_model(tmp_path, "causal_lm", hidden_states=True, memory=True)
    ids, memory = dropout.inputs(case)
    inputs = make_inputs(ids, np.swapaxes(memory, 0, 1))
    run = tf.function(lambda: model(inputs, training=True)["hidden_states"])
    passes = [run() for _ in range(60)]
    found = [dropout.variances([np.array(p[i]) for p in passes]) for i in range(len(passes[0]))]
    assert found == pytest.approx(DROPOUT[f"{case}/{rates}"], rel=0.05, abs=1e-6)


def make_inputs(ids, memory):
    ones = np.ones_like(ids)
    return {"token_ids": ids, "segment_ids": 0 * ones, "padding_mask": ones, "memory": memory}


@pytest.mark.parametrize("case", CASES)
def test_segments_with_memory(case, tmp_path):
    write_folder(tmp_path, case)
    model = load_model(
        tmp_path, "causal_lm", hidden_states=True, attention_scores=True, memory=True
    )
    variables = {v.path: v for v in model.trainable_variables}
    # Their first segment sees a memory of zeros; ours may have none, as the paper's.
    memory = np.zeros((2, 2, CASES[case]["mem_len"], 12), "float32")
    for i, ids in enumerate(segments(case)):
        pull = draw(f"pull_{i}", (2, SEGMENTS[i], 50))
        with tf.GradientTape() as tape:
            found = model(make_inputs(ids, memory))
            loss = tf.reduce_sum(found["logits"] * pull)
        recorded = {k: RECORDED[f"{case}/{i}/{k}"] for k in ("logits", "memory", "hidden_states")}
        near(found["logits"], recorded["logits"], 1e-5 * np.abs(recorded["logits"]).max())
        near(found["memory"], recorded["memory"], 1e-5)
        for a, b in zip(found["hidden_states"], recorded["hidden_states"], strict=True):
            near(a, b, 1e-5)
        for a, b in zip(
            found["attention_scores"], RECORDED[f"{case}/{i}/attention_weights"], strict=True
        ):
            near(tf.nn.softmax(np.where(b > 0, a, -1e9)), b, 1e-5)
        named = []
        for weight in map_of(model.text_config).weights(model).values():
            name = weight.name if weight.head else f"transformer.{weight.name}"
            value = RECORDED[f"{case}/{i}/by/{name}"]
            value = value.T if weight.transpose else value
            if weight.part:
                value = np.split(value, weight.part[1], axis=-1)[weight.part[0]]
            named.append((variables[weight.path], value, False))
        assert len(named) == len(variables)
        check_gradients(tape, loss, named)
        memory = found["memory"].numpy()


def test_tables_of_its_own(tmp_path):
    """Tied and untied outputs are the same where their tables are."""
    case = "adaptive"
    write_folder(tmp_path / "tied", case)
    tied = load_model(tmp_path / "tied", "causal_lm")
    reader = TensorReader(tmp_path / "tied")
    tensors = {name: reader.read(name) for name in reader.names()}
    for i in range(len(CASES[case]["cutoffs"]) + 1):
        table = tensors[f"transformer.word_emb.emb_layers.{i}.weight"]
        tensors[f"crit.out_layers.{i}.weight"] = table.copy()
    write_tensors(tmp_path / "own" / "model.safetensors", tensors)
    write_json(tmp_path / "own" / "config.json", fields(case) | {"tie_word_embeddings": False})
    own = load_model(tmp_path / "own", "causal_lm")
    inputs = make_inputs(segments(case)[0], None)
    del inputs["memory"]
    expected = tied(inputs)["logits"].numpy()
    near(own(inputs)["logits"], expected, 1e-5)
    own.get_layer("lm_softmax").tables[-1].assign(0 * own.get_layer("lm_softmax").tables[-1])
    found = own(inputs)
    assert np.abs(found["logits"] - expected).max() > 0.1
    near(found["sequence_output"], tied(inputs)["sequence_output"], 1e-5)
    save_model(own, tmp_path / "saved")
    near(load_model(tmp_path / "saved", "causal_lm")(inputs)["logits"], found["logits"], 1e-6)


def test_an_empty_memory_is_none_and_padding_is_not_seen(tmp_path):
    write_folder(tmp_path, "adaptive")
    inputs = make_inputs(segments("adaptive")[0], np.zeros((2, 2, 0, 12), "float32"))
    with_memory = load_model(tmp_path, "causal_lm", memory=True)(inputs)
    del inputs["memory"]
    model = load_model(tmp_path, "causal_lm")
    without = model(inputs)
    near(with_memory["logits"], without["logits"], 1e-6)
    assert with_memory["memory"].shape == (2, 2, 6, 12)
    assert "memory" not in without
    short = model({k: v[:, 2:] for k, v in inputs.items()})["sequence_output"]
    inputs["padding_mask"] = np.where(np.arange(7) < 2, 0, inputs["padding_mask"])
    near(model(inputs)["sequence_output"][:, 2:], short, 1e-5)


@pytest.mark.parametrize("case", CASES)
def test_what_is_saved_has_their_names(case, tmp_path):
    shapes = write_folder(tmp_path / "theirs", case)
    model = load_model(tmp_path / "theirs", "causal_lm")
    save_model(model, tmp_path / "ours")
    reader = TensorReader(tmp_path / "ours")
    assert {n: list(reader.shape(n)) for n in reader.names()} == shapes
    for name in shapes:
        np.testing.assert_array_equal(reader.read(name), draw(name, shapes[name]))
    assert load_model(tmp_path / "ours").text_config == model.text_config


def test_fields_that_ask_for_another_model_are_named(tmp_path):
    write_folder(tmp_path, "adaptive")
    other = {"div_val": 1, "d_head": 5, "attn_type": 1, "sample_softmax": 10, "tie_weight": False}
    for name, value in (other | {"tie_projs": [False, True, False, True]}).items():
        write_json(tmp_path / "config.json", fields("adaptive") | {name: value})
        with pytest.raises(InputError, match=f"{name}="):
            load_model(tmp_path)


def test_mixed_precision(tmp_path):
    write_folder(tmp_path, "own_projections")
    ids = segments("own_projections")[2]
    inputs = make_inputs(ids, draw("memory", (2, 2, 4, 12)))
    expected = load_model(tmp_path, "causal_lm", memory=True)(inputs)
    found = load_model(tmp_path, "causal_lm", memory=True, dtype="mixed_float16")(inputs)
    assert found["logits"].dtype == found["memory"].dtype == "float32"
    near(found["logits"], expected["logits"], 0.05 * np.abs(expected["logits"]).max())
