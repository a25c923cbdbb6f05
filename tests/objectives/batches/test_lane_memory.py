"""The memory of lanes: its state, its devices and non-finite segments."""

import dataclasses

import keras
import numpy as np

from tests.objectives.batches.test_token_stream import Tokens, large_corpus
from tests.objectives.test_causal_lm import XL, rows
from tfnlp.models import build_model
from tfnlp.objectives import CausalLM


def memory_of(trained):
    """The training memory's variables, as NumPy has them."""
    lanes = trained.training_memory
    return [np.array(v) for v in (lanes.states, lanes.filled)]


def compiled(trained, objective, optimizer):
    """A model of Keras that trains `trained` as `fit` does."""

    class Trainer(keras.Model):
        def __init__(self):
            super().__init__()
            self.trained = trained
            self.built = True

        def call(self, inputs, training=None):
            return self.trained(inputs, training=training)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            losses, weights = objective.losses(y, y_pred), objective.loss_weights
            return sum(weights[name] * loss for name, loss in losses.items())

    trainer = Trainer()
    trainer.compile(optimizer, jit_compile=False)
    trainer.optimizer.build(trainer.trainable_variables)
    return trainer


def test_memory_is_part_of_the_state_and_dev_has_its_own(no_graphs):
    objective, corpus = CausalLM(memory=True), large_corpus(documents=20)
    batches = objective.batches(corpus, Tokens(), 4, 6, seed=3)
    dev = objective.batches(large_corpus(7), Tokens(), 4, 6, shuffle=False)
    assert len(batches) >= 8

    model = build_model(dataclasses.replace(XL, num_layers=1), "causal_lm", memory=True)
    trained = objective.trained(model, batch_size=4)
    trainer = compiled(trained, objective, keras.optimizers.Adam(0.01))
    for inputs, labels in batches.epoch(0):
        trainer.train_on_batch(inputs, labels)
    names = [v.path for v in trainer.variables if "memory" in v.path]
    assert len(names) == 4 and not any("memory" in v.path for v in trainer.trainable_variables)
    assert memory_of(trained)[1].tolist() == [6] * 4
    # A dev pass in between has a memory of its own, which begins anew.
    before = memory_of(trained)
    passes = [[float(trainer.test_on_batch(*b)) for b in dev.epoch()] for _ in range(2)]
    assert passes[0] == passes[1]
    for a, b in zip(memory_of(trained), before, strict=True):
        np.testing.assert_array_equal(a, b)
    # The next epoch begins without a memory.
    (first, labels), *_ = batches.epoch(1)
    found = trained(first, training=True)["log_probabilities"]
    for v in (trained.training_memory.states, trained.training_memory.filled):
        v.assign(0 * v)
    np.testing.assert_array_equal(trained(first, training=True)["log_probabilities"], found)


def test_a_non_finite_segment_leaves_the_memory_unchanged(no_graphs):
    model = build_model(XL, "causal_lm", memory=True)
    trained = CausalLM(memory=True).trained(model, batch_size=2)
    ids = np.random.default_rng(1).integers(2, 50, (2, 6))
    trained(rows(ids, 0)[0], training=True)
    before, weights = memory_of(trained), model.get_weights()
    model.set_weights([w * np.nan for w in weights])
    trained(rows(ids, 1)[0], training=True)
    for a, b in zip(memory_of(trained), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert before[1].tolist() == [5, 5] and np.isfinite(before[0]).all()


def test_a_batch_in_parts_has_the_memory_of_the_whole(no_graphs):
    model = build_model(XL, "causal_lm", memory=True)
    trained = CausalLM(memory=True).trained(model, batch_size=4)
    ids = np.random.default_rng(1).integers(2, 50, (4, 16))
    segments = [rows(ids[:, 5 * i : 5 * i + 6], i > 0)[0] for i in range(3)]
    whole = [trained(s, training=True)["log_probabilities"].numpy() for s in segments]
    kept = memory_of(trained)
    for i, segment in enumerate(segments):
        parts = [{k: v[part] for k, v in segment.items()} for part in ([2, 0, 3], [1])]
        found = [trained(p, training=True)["log_probabilities"].numpy() for p in parts]
        np.testing.assert_allclose(
            np.concatenate(found), whole[i][[2, 0, 3, 1]], rtol=1e-6, atol=1e-6
        )
    for a, b in zip(memory_of(trained), kept, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
