"""Only the adapters and the head train; what is saved is merged."""

import dataclasses

import numpy as np
import pytest

from tests.kills import KILLS, assert_same_weights
from tests.models.small import sizes
from tests.training.run.test_resumable_fit import CONFIG, train
from tests.training.step.test_frozen import DATA
from tfnlp.checkpoints import load_model, merge_adapter, save_model
from tfnlp.models import Gpt2Config, build_model
from tfnlp.objectives import CausalLM
from tfnlp.tasks import Classification
from tfnlp.tasks.classifier_settings import Decision
from tfnlp.training import FineTuning, RunFolder, Splits, TrainingConfig, add_lora
from tfnlp.training.step.frozen import freeze
from tfnlp.utils.errors import InputError


def tuning(model, tokenizer, folder, compress=None, **options):
    settings = TrainingConfig(epochs=12, batch_size=8, learning_rate=1e-2, lora_rank=2, **options)
    task, data = Classification(["bad", "good"]), Splits(DATA, DATA, 16)
    run = RunFolder(folder, {})
    return FineTuning(task, model, tokenizer, data, settings, run, compress=compress)


@pytest.mark.parametrize(
    ("options", "adapted"),
    [
        ({}, ("query", "value")),
        (
            {"lora_layers": ("attention/output", "intermediate"), "ema_decay": 0.5},
            ("attention/output", "intermediate"),
        ),
        (
            {"lora_layers": ("all",), "accumulation_steps": 2, "gradient_checkpointing": True},
            ("query", "key", "value", "output", "intermediate"),
        ),
    ],
    ids=["default", "averages", "all_in_parts"],
)
def test_a_run_learns_and_its_adapter_on_the_base_is_the_merged_model(
    options, adapted, one_layer, tokenizer, random_inputs, tmp_path
):
    save_model(build_model(one_layer, "classifier", 2), tmp_path / "base")
    model = load_model(tmp_path / "base", "classifier")
    before = {v.path: np.array(v) for v in model.weights}
    run = tuning(model, tokenizer, tmp_path / "run", **options)
    run.run_all()
    losses = [metrics["loss"] for metrics in run.run.metrics()]
    assert losses[-1] < 0.8 * losses[0]
    moved = {
        v.path for v in model.weights if v.path in before and (np.array(v) != before[v.path]).any()
    }
    assert {path.partition("/")[0] for path in moved} == {"pooler", "classifier"}
    factors = {v.path.rpartition("/")[0] for v in model.weights if v.name == "lora_kernel_b"}
    assert factors and all(path.endswith(adapted) for path in factors)
    assert all(any(path.endswith(name) for path in factors) for name in adapted)
    inputs = random_inputs(2, 7, one_layer.vocabulary_size)
    best = load_model(run.run.best, "classifier")
    base = load_model(tmp_path / "base", "classifier")
    merge_adapter(base, run.run.best / "adapter")
    for a, b in zip(best.weights, base.weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)
    if not options:
        run.measure("dev")
        run.task = Classification(["bad", "good"], decision=Decision(calibrated=True))
        kernel = np.array(best.get_layer("classifier").kernel)
        temperature = run.evaluate()["temperature"]
        merge_adapter(base, run.run.best / "adapter")
        cooled = base.get_layer("classifier").kernel
        np.testing.assert_allclose(cooled, kernel / temperature, rtol=1e-6)
        save_model(model, tmp_path / "last")
        last = load_model(tmp_path / "last", "classifier")
        logits = model(inputs)["logits"]
        np.testing.assert_allclose(last(inputs)["logits"], logits, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"accumulation_steps": 2, "gradient_checkpointing": True}]
)
def test_a_killed_run_ends_alike(options, one_layer, tmp_path):
    config = dataclasses.replace(CONFIG, lora_rank=2, epochs=1, **options)
    whole, _ = train(tmp_path / "whole", one_layer, config, dev=False)
    with pytest.raises(KILLS):
        train(tmp_path / "broken", one_layer, config, stop_after=4, dev=False)
    resumed, _ = train(tmp_path / "broken", one_layer, config, dev=False)
    assert_same_weights(whole.get_weights(), resumed.get_weights())


def test_frozen_blocks_get_no_adapter(tiny_config):
    model = build_model(tiny_config, "tagger", 3)
    for variable in model.get_layer("encoder_0").weights:
        variable.trainable = False
    add_lora(model, 2)
    add_lora(model, 2)  # as the next phase of a distillation does
    paths = {v.path.partition("/")[0] for v in model.trainable_variables}
    assert paths == {"encoder_1", "encoder_2", "classifier"}


def test_a_language_model_trains_adapters_alone(one_layer):
    model = build_model(one_layer, "masked_lm")
    add_lora(model, 2)
    assert {v.name for v in model.trainable_variables} == {"lora_kernel_a", "lora_kernel_b"}


def test_what_cannot_be_is_refused(one_layer, tokenizer, tmp_path):
    model = build_model(one_layer, "classifier", 2)
    with pytest.raises(InputError, match=r"lora_layers=q_proj is no kernel.*attention/query"):
        add_lora(model, 2, ("q_proj",))
    frozen = build_model(one_layer, "classifier", 2)
    freeze(frozen, blocks=1)
    with pytest.raises(InputError, match="lora_layers=query,value, but all of them are frozen"):
        add_lora(frozen, 2)
    trained = CausalLM().trained(build_model(Gpt2Config(**sizes()), "causal_lm"))
    with pytest.raises(InputError, match="lora_rank=2 is for fine-tuning"):
        add_lora(trained, 2)
    with pytest.raises(InputError, match="lora_rank=2 keeps the kernels"):
        tuning(model, tokenizer, tmp_path / "run", compress=lambda *_: None).run_all()
