"""Training in half precision learns what training in float32 learns."""

import dataclasses

import keras
import numpy as np
import pytest

from tests.training.step.test_shared_traces import CONFIG, fitted, small_model

STEPS = 18
# Smaller than half precision resolves beside the weights themselves.
SLOW = dataclasses.replace(CONFIG, learning_rate=1e-4, weight_decay=0.0)


def learned(policy, config=SLOW, prepare=lambda model: None):
    """Return {path: change} of each weight after `STEPS` steps without dropout."""
    keras.config.set_dtype_policy(policy)
    model = small_model("bert")
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0
    prepare(model)
    before = model.get_weights()
    train = fitted(model, config)
    for _ in range(STEPS // 3):
        train()
    return dict(
        zip(
            [w.path for w in model.weights],
            [b - a for a, b in zip(before, model.get_weights(), strict=True)],
            strict=True,
        )
    )


def freeze_first_block(model):
    model.get_layer("encoder_0").trainable = False


@pytest.mark.parametrize(
    "policy, options, prepare",
    [
        ("mixed_bfloat16", {}, lambda model: None),
        ("mixed_float16", {"gradient_checkpointing": True}, freeze_first_block),
        ("mixed_bfloat16", {"accumulation_steps": 2, "ema_decay": 0.5}, freeze_first_block),
    ],
    ids=["plain", "recomputed", "accumulated"],
)
def test_weights_move_as_in_float32(policy, options, prepare):
    config = dataclasses.replace(SLOW, **options)
    full = learned("float32", config, prepare)
    half = learned(policy, config, prepare)
    assert full.keys() == half.keys()
    for path, change in full.items():
        a, b = np.ravel(change), np.ravel(half[path])
        if not np.any(a):
            assert not np.any(b), path  # frozen
        elif "key/bias" not in path:  # whose gradient is 0 but for rounding
            assert np.dot(a, b) > 0.95 * np.linalg.norm(a) * np.linalg.norm(b), path
            assert np.linalg.norm(b) == pytest.approx(np.linalg.norm(a), rel=0.25), path
