"""Blocks that are traced once compute what each traced by itself does."""

import contextlib
import gc
import inspect

import keras
import numpy as np
import pytest

from tfnlp.configs import config_by_name
from tfnlp.layers import EncoderBlock
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.training import FineTuner, TrainingConfig, compile_model
from tfnlp.training.step import trainer

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
CONFIG = TrainingConfig(batch_size=4, learning_rate=1e-2, warmup_steps=0, epsilon=1e-3)


def small_model(family, **sizes):
    keras.utils.set_random_seed(0)
    config = config_by_name(family, vocabulary_size=20, **SIZES | sizes)
    return build_model(config, "classifier", 2)


def trained_weights(family):
    """Return the weights after three steps with dropout."""
    model = small_model(family)
    fitted(model)()
    return model.get_weights()


def fitted(model, config=CONFIG):
    """Return a function that trains a model for three steps each time."""
    tuner = FineTuner(model, Classification(["no", "yes"]))
    compile_model(config, tuner, 3)
    rng = np.random.default_rng(0)
    inputs = {name: np.zeros((12, 6), "int32") for name in model.input}
    inputs |= {"token_ids": rng.integers(5, 20, (12, 6)), "padding_mask": np.tri(12, 6, 2)}
    inputs = {name: value.astype("int32") for name, value in inputs.items()}
    labels = rng.integers(0, 2, 12).astype("int32")
    return lambda: tuner.fit(inputs, labels, batch_size=4, shuffle=False, verbose=0)


@pytest.fixture
def traced(monkeypatch):
    """The names of the blocks whose `call` TensorFlow traces in training."""
    calls, call = [], EncoderBlock.call

    def counted(block, *args, **kwargs):
        if kwargs.get("training"):
            calls.append(block.name)
        return call(block, *args, **kwargs)

    counted.__signature__ = inspect.signature(call)
    monkeypatch.setattr(EncoderBlock, "call", counted)
    return calls


@pytest.mark.parametrize("family", ["albert", "deberta_v3", "modernbert"])
def test_blocks_are_traced_once_and_compute_what_each_does_by_itself(family, traced, monkeypatch):
    shared = trained_weights(family)
    # ALBERT's one block is called for each of its layers; ModernBERT's two are global and local.
    assert len(traced) == (1 if family == "deberta_v3" else 2)
    traced.clear()
    monkeypatch.setattr(trainer, "shared_traces", contextlib.nullcontext)
    alone = trained_weights(family)
    assert len({*traced}) == (1 if family == "albert" else 2)
    for a, b in zip(shared, alone, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_blocks_that_compute_otherwise_are_kinds_of_their_own(traced):
    model = small_model("bert", num_layers=7)
    blocks = [model.get_layer(f"encoder_{i}") for i in range(7)]
    blocks[1].trainable = False
    blocks[2].attention_dropout_layer.rate = 0.5
    blocks[3].feed_forward.dtype_policy = keras.DTypePolicy("bfloat16")
    blocks[4].recompute = True
    blocks[5].feed_forward.activity_regularizer = keras.regularizers.L2()
    fitted(model)()
    assert {*traced} > {block.name for block in blocks[1:6]}
    assert len({*traced}) == 6  # the last is as the first


def test_blocks_are_as_before_after_each_training(traced):
    model = small_model("bert")
    blocks = [model.get_layer(f"encoder_{i}") for i in range(2)]
    fit = fitted(model)
    for train in (fit, fit, fitted(model)):
        before = model.get_weights()
        train()
        gc.collect()
        assert not any("call" in vars(block) for block in blocks)
        assert any(np.any(a != b) for a, b in zip(before, model.get_weights(), strict=True))
    assert len(traced) == 2  # once for each of the two trainers
    inputs = {name: np.ones((1, 6), "int32") for name in model.input}
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(inputs)["logits"], model(inputs)["logits"], rtol=1e-6)
