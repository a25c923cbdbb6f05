"""Recomputed blocks give what blocks give, with less in memory."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.models.small import sizes
from tfnlp import models
from tfnlp.functional.recompute import recompute_blocks

SIZES = sizes()
HEADS = {
    "AlbertConfig": "tagger",  # two calls of one block
    "DebertaV2Config": "tagger",  # a table beside the states
    "XLNetConfig": "permutation_lm",  # two streams
    "TransformerXLConfig": "causal_lm",  # a memory, and a memory's gradient
    "TransformerConfig": "sequence_to_sequence",  # blocks of two inputs
}
MORE = {"TransformerXLConfig": {"cutoffs": (8,)}}


@pytest.mark.parametrize("family", HEADS)
def test_gradients_and_draws_are_those_of_blocks_that_are_kept(family):
    config = getattr(models, family)(
        dropout=0.3, attention_dropout=0.3, **SIZES, **MORE.get(family, {})
    )
    head = HEADS[family]
    model = models.build_model(config, head, num_classes=3 if head == "tagger" else None)
    rng = np.random.default_rng(0)
    for weight in model.trainable_variables:
        weight.assign(rng.normal(size=weight.shape, scale=0.2))
    ids = rng.integers(1, 20, (2, 6)).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    inputs |= {"encoder_token_ids": ids, "encoder_padding_mask": np.ones_like(ids)}
    inputs["decoder_token_ids"] = ids[:, ::-1]
    if head == "permutation_lm":
        inputs["permutation_order"] = np.stack([rng.permutation(6) for _ in range(2)]).astype(
            "int32"
        )
        inputs["target_mapping"] = np.eye(6, dtype="float32")[None].repeat(2, 0)
    inputs = {name: inputs[name] for name in model.input}

    def step():
        with tf.GradientTape() as tape:
            outputs = tf.nest.flatten(model(inputs, training=True))
            loss = tf.add_n([tf.reduce_sum(x**2) for x in outputs])
        return loss, tape.gradient(loss, [v.value for v in model.trainable_variables])

    seeds = [v for v in model.non_trainable_variables if "seed" in v.path]
    assert seeds
    start, found = [np.asarray(v) for v in seeds], []
    for recomputed in (False, True):
        for seed, value in zip(seeds, start, strict=True):
            seed.assign(value)
        if recomputed:
            recompute_blocks(model)
        loss, gradients = step()
        gradients = [np.asarray(tf.convert_to_tensor(g)) for g in gradients if g is not None]
        found.append([np.asarray(loss), *gradients, *map(np.asarray, seeds)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5 * max(1, np.abs(a).max()))
    assert any(np.abs(np.asarray(s) - v).max() for s, v in zip(seeds, start, strict=True))


def test_without_training_nothing_is_recomputed(monkeypatch):
    model = models.build_model(models.BertConfig(**SIZES), "tagger", 3)
    ids = np.ones((1, 4), "int32")
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    recompute_blocks(model)
    calls, remat = [], keras.remat
    monkeypatch.setattr(keras, "remat", lambda f: calls.append(1) or remat(f))
    model(inputs, training=False)
    assert not calls
    model(inputs, training=True)
    assert len(calls) == 2 and model.get_layer("encoder_0").recompute
