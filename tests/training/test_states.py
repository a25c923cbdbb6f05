"""A state is taken up by the names of its tensors, and for the data that it was made from."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from distill.learning.distiller import Distiller
from distill.learning.methods import logits
from tests.kills import assert_same_weights
from tests.training.run.test_fingerprints import two_layers
from tests.training.run.test_resumable_fit import make_batches
from tests.training.test_best_epoch import tiny_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.training import FineTuner, RunFolder, TrainingConfig, fit, optimizer_of
from tfnlp.training.run.resumable_fit import variable_names
from tfnlp.training.step.adversarial import AdversarialRegularizer
from tfnlp.utils.errors import InputError

CONFIG = TrainingConfig(epochs=1, batch_size=4)


def compiled_models(config):
    """Trainers of one model, of two, and in half precision, built and compiled."""
    task = Classification(["a", "b"])
    model = build_model(config, "classifier", 2)
    regularizer = AdversarialRegularizer(model, task.kind, 1.0)
    student = build_model(config, "classifier", 2, hidden_states=True)
    terms = logits(student, student, task, hidden_state_weight=0.1)
    trainers = [FineTuner(model, task), FineTuner(model, task, regularizer)]
    for trainer in (*trainers, Distiller(student, task, terms, student)):
        trainer.compile(optimizer_of(CONFIG, trainer, 7), jit_compile=False)
        yield trainer
    keras.config.set_dtype_policy("mixed_float16")
    half = FineTuner(build_model(config, "classifier", 2), task)
    half.compile(optimizer_of(CONFIG, half, 7), jit_compile=False)
    keras.config.set_dtype_policy("float32")
    yield half


def named(model):
    model.optimizer.build(model.trainable_variables)
    return variable_names(model)


def test_names_are_the_same_however_many_models_came_before(tiny_config):
    config = dataclasses.replace(tiny_config, num_layers=2)
    first = [named(m) for m in compiled_models(config)]
    second = [named(m) for m in compiled_models(config)]
    for a, b in zip(first, second, strict=True):
        assert list(a) == list(b)
        assert [v.shape for v in a.values()] == [v.shape for v in b.values()]
    plain, tuner, _, half = first
    for found in first:
        kernel = found["encoder/attention/query/kernel#1"]
        assert kernel.path == "encoder_1/attention/query/kernel"
        velocity = found["fused_adam_w/encoder_attention_query_kernel_velocity#1"]
        assert velocity.path.endswith("encoder_1_attention_query_kernel_velocity")
        assert len({id(v) for v in found.values()}) == len(found)
    assert {"seed_generator/seed_generator_state", "fused_adam_w/iteration"} <= plain.keys()
    assert len(tuner) == len(plain) + 1  # the regularizer's seed
    assert {"replica_loss_scale_optimizer/dynamic_scale", "fused_adam_w/iteration"} <= half.keys()


class Pair(keras.Model):
    """Two layers of one name, which a model of its own class may have."""

    def __init__(self):
        super().__init__(name="pair")
        self.parts = [keras.layers.Dense(3, name="same") for _ in range(2)]

    def call(self, x):
        return self.parts[0](x) + self.parts[1](x)


def test_variables_of_one_name_are_told_apart_by_their_order():
    model = Pair()
    model(np.zeros((1, 3)))
    model.compile(keras.optimizers.Adam(), "mse")
    found = named(model)
    assert len(found) == 4 + len(model.optimizer.variables)
    for layer, number in zip(model.parts, ("", "#1"), strict=True):
        assert found[f"pair/same/kernel{number}"] is layer.kernel


def test_a_state_is_matched_by_name_shape_and_type(tmp_path):
    run = RunFolder(tmp_path / "run", {})
    saved = named(two_layers("ab"))
    for number, variable in enumerate(saved.values()):
        variable.assign(tf.fill(variable.shape, tf.cast(number, variable.dtype)))
    sums = {"loss/total": np.array(3.0, "float32")}
    run.save_state(saved, sums, {"epoch": 1}, {"train": "x"})
    found = named(two_layers("ab", order=(1, 0)))
    assert list(found) != list(saved)
    assert run.load_state(found, {"train": "x"}) == ({"epoch": 1}, sums)
    for name, variable in saved.items():
        np.testing.assert_array_equal(variable, found[name])

    wider = {**found, "b/kernel": tf.Variable(tf.zeros((3, 4)))}
    halved = {**found, "b/kernel": tf.Variable(tf.zeros((3, 3), "float16"))}
    other = named(two_layers("ac"))
    fewer = {name: v for name, v in found.items() if name != "a/bias"}
    for variables, message in [
        (wider, r"b/kernel is float32 \(3, 3\) there and float32 \(3, 4\) here"),
        (halved, r"b/kernel is float32 \(3, 3\) there and float16 \(3, 3\) here"),
        (other, r"c/kernel is missing there and float32 \(3, 3\) here"),
        (fewer, r"a/bias is float32 \(3,\) there and missing here"),
    ]:
        before = [np.array(v) for v in variables.values()]
        with pytest.raises(InputError, match=rf"is the state of another model: {message}"):
            run.load_state(variables, {"train": "x"})
        assert_same_weights(before, variables.values())


def test_changed_data_are_noticed_on_resuming(tmp_path):
    run = RunFolder(tmp_path / "run", {"dev": "dev.tsv"})

    def resume(batches=None, **fingerprints):
        data, prints = batches or make_batches(25), {"dev": "1", "teacher": "2"} | fingerprints
        prints = {name: value for name, value in prints.items() if value}
        fit(tiny_model(CONFIG), data, CONFIG, run, lambda folder: None, fingerprints=prints)

    resume()
    resume()
    relabelled = make_batches(25)
    relabelled.labels[3] = 1 - relabelled.labels[3]
    for changed, what in [
        ({"batches": relabelled}, "on other content of the encoded batches"),
        ({"batches": make_batches(25, count=4)}, "the encoded batches"),  # fewer than were done
        ({"teacher": "3"}, "on other content of teacher"),
        ({"dev": "0"}, r"on other content of dev \(dev\.tsv\)"),
        ({"teacher": None}, "with teacher"),
        ({"pruning": "3"}, "without pruning"),
    ]:
        with pytest.raises(InputError, match=rf"was trained .*{what}"):
            resume(**changed)


def test_fewer_batches_than_were_done_are_named():
    batches = make_batches(25)
    assert int(batches.dataset(skip=7).cardinality()) == 0
    for skip in (-1, 8, 9):
        with pytest.raises(ValueError, match=rf"skip={skip} must lie between 0 and the 7 batches"):
            batches.dataset(skip=skip)
