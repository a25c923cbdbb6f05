"""Gradients of a batch in parts, of a loss that compares its examples."""

import dataclasses

import keras
import numpy as np
import pytest

from tfnlp.layers import fake_quantize
from tfnlp.models import build_model, seed_variables
from tfnlp.tasks import SentenceVectors, TextGroups, VectorSettings
from tfnlp.text import LengthBatches
from tfnlp.training import FineTuner
from tfnlp.training.step.cached_gradients import cached_gradients
from tfnlp.utils.errors import InputError

GROUPS = TextGroups([("a fine film", "the good film"), ("the a", "a the"), ("film", "fine good")])


@pytest.mark.parametrize("loss", ["ranking", "cosent", "cosine"])
def test_a_batch_in_parts_is_one_to_the_loss(loss, one_layer, tokenizer):
    groups = dataclasses.replace(GROUPS, scores=[1, 0, 0.5])
    task = SentenceVectors(VectorSettings(loss=loss))
    encodings, labels = task.encode(tokenizer, groups, 12)
    batches = LengthBatches(encodings, 3, labels, pad_token_id=tokenizer.pad_token_id)
    config = dataclasses.replace(one_layer, dropout=0.0, attention_dropout=0.0)
    weights = []
    for parts in (1, 2):
        keras.utils.set_random_seed(0)
        model = build_model(config, "embedder")
        trainer = FineTuner(model, task)
        scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=16)
        trainer.compile(scaled)
        trainer.accumulation_steps = parts
        losses = [trainer.train_on_batch(*batches.batch([0, 1, 2])) for _ in range(3)]
        weights.append([losses, *map(np.asarray, model.weights)])
    for whole, by_part in zip(*weights, strict=True):
        np.testing.assert_allclose(by_part, whole, atol=2e-5)


def test_both_passes_of_a_part_drop_the_same(one_layer, tokenizer):
    """By finite differences: with other dropout, the gradient would be of another function."""
    model = build_model(dataclasses.replace(one_layer, dropout=0.5), "embedder")
    task = SentenceVectors()
    encodings, labels = task.encode(tokenizer, GROUPS, 12)
    batches = LengthBatches(encodings, 3, labels, pad_token_id=tokenizer.pad_token_id)
    trainer = FineTuner(model, task)
    trainer.compile(keras.optimizers.SGD(1.0))
    data = batches.batch([0, 1, 2])
    data = {k: keras.ops.convert_to_tensor(x) for k, x in data[0].items()}, data[1]
    variable = model.get_layer("embeddings").trainable_weights[-1]
    seeds = seed_variables(model)
    start = [np.asarray(v) for v in seeds]

    def loss_and_gradient():
        for seed, value in zip(seeds, start, strict=True):
            seed.assign(value)
        trainer.reset_metrics()
        gradients = cached_gradients(trainer, data, 2)
        places = [v.path for v in trainer.trainable_weights]
        loss = float(trainer.get_metrics_result()["loss"])
        return loss, np.asarray(gradients[places.index(variable.path)])

    _, gradient = loss_and_gradient()
    value, step = np.asarray(variable), 1e-2 * gradient / np.linalg.norm(gradient)
    variable.assign(value + step)
    above, _ = loss_and_gradient()
    variable.assign(value - step)
    below, _ = loss_and_gradient()
    assert above - below == pytest.approx(2 * np.sum(gradient * step), rel=0.05)
    assert any((np.asarray(v) != x).any() for v, x in zip(seeds, start, strict=True))


def test_rounded_models_are_not_cut_into_parts(one_layer, tokenizer):
    model, task = build_model(one_layer, "embedder"), SentenceVectors()
    fake_quantize(model)
    encodings, labels = task.encode(tokenizer, GROUPS, 12)
    batches = LengthBatches(encodings, 3, labels, pad_token_id=tokenizer.pad_token_id)
    with pytest.raises(InputError, match="quantization_aware"):
        cached_gradients(FineTuner(model, task), batches.batch([0, 1, 2]), 2)
