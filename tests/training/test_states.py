"""A state is taken up by the names of its tensors, and for the data that it was made from."""

import dataclasses
import json
import re

import keras
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from distill.learning.distiller import Distiller
from distill.learning.methods import logits
from tests.training.test_best_epoch import tiny_model
from tests.training.test_resumable_fit import make_batches
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizer import Encoding
from tfnlp.training import FineTuner, RunFolder, TrainingConfig, compile_classifier, fit
from tfnlp.training.adversarial import AdversarialRegularizer
from tfnlp.training.fingerprints import content_fingerprint, model_fingerprint
from tfnlp.training.optimizer import optimizer_of
from tfnlp.training.variable_names import variable_names
from tfnlp.utils.errors import InputError

CONFIG = TrainingConfig(epochs=1, batch_size=4)


def compiled_models(config):
    """Everything that recipes train, built and compiled."""
    model = build_model(config, "classifier", 2)
    yield compile_classifier(model, optimizer_of(CONFIG, model, 7))
    task = Classification(["a", "b"])
    tuner = FineTuner(model, task, AdversarialRegularizer(model, task.outputs, 1.0))
    tuner.compile(optimizer_of(CONFIG, model, 7), jit_compile=False)
    yield tuner
    student = build_model(config, "classifier", 2, hidden_states=True)
    terms = logits(student, student, task, hidden_state_weight=0.1)
    distiller = Distiller(student, task, terms, student)
    distiller.compile(optimizer_of(CONFIG, distiller, 7), jit_compile=False)
    yield distiller
    keras.config.set_dtype_policy("mixed_float16")
    model = build_model(config, "classifier", 2)
    yield compile_classifier(model, optimizer_of(CONFIG, model, 7))
    keras.config.set_dtype_policy("float32")
    yield tiny_model(CONFIG)


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
    plain, tuner, distiller, half, tiny = first
    for found in (plain, tuner, distiller, half):
        assert found["encoder_1/attention/query/kernel"].path == "encoder_1/attention/query/kernel"
        velocity = found["fused_adam_w/encoder_1/attention/query/kernel/velocity"]
        assert velocity.path.endswith("encoder_1_attention_query_kernel_velocity")
        assert len({id(v) for v in found.values()}) == len(found)
    assert {"seed_generator/seed_generator_state", "fused_adam_w/iteration"} <= plain.keys()
    assert len(tuner) == len(plain) + 1  # the regularizer's seed
    assert {"replica_loss_scale_optimizer/dynamic_scale", "fused_adam_w/iteration"} <= half.keys()
    assert {"embedding/embeddings", "dense/kernel", "fused_adam_w/dense/kernel/velocity"} < set(
        tiny
    )


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


def two_layers(names, order=(0, 1)):
    """A model of two layers of one shape, made in an order."""
    inputs = keras.Input((3,))
    layers = {i: keras.layers.Dense(3, name=names[i]) for i in order}
    outputs = [layers[i](inputs) for i in order]
    model = keras.Model(inputs, keras.layers.Add()(outputs))
    model.compile(keras.optimizers.Adam(), "mse")
    return model


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
        for a, b in zip(before, variables.values(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_state_of_an_older_version_is_refused(tmp_path):
    run = RunFolder(tmp_path / "run", {})
    run.start()
    arrays = {"variable_00000": np.zeros((3, 3), "float32")}
    safetensors.numpy.save_file(arrays, run.state_path, {"progress": json.dumps({"epoch": 1})})
    with pytest.raises(InputError, match="is of an older version, which did not name its tensors"):
        run.load_state({}, {})


def test_changed_data_are_noticed_on_resuming(tmp_path):
    run = RunFolder(tmp_path / "run", {"dev": "dev.tsv"})
    kwargs = {"dev": make_batches(25, shuffle=False), "made_from": {"dev": "1", "teacher": "2"}}

    def resume(batches=None, **changed):
        fit(
            tiny_model(CONFIG),
            make_batches(25) if batches is None else batches,
            CONFIG,
            run,
            lambda: None,
            **{**kwargs, **changed},
        )

    resume()
    resume()
    relabelled = make_batches(25)
    relabelled.labels[3] = 1 - relabelled.labels[3]
    other_batches = "the encoded batches"
    for changed, what in [
        ({"batches": relabelled}, other_batches),
        ({"batches": make_batches(25, count=25)}, other_batches),
        ({"batches": make_batches(25, count=4)}, other_batches),  # fewer than were done
        ({"dev": make_batches(25, False, count=25)}, "the encoded dev batches"),
        ({"made_from": {"dev": "1", "teacher": "3"}}, "teacher"),
        ({"made_from": {"dev": "0", "teacher": "2"}}, r"dev \(dev\.tsv\)"),
    ]:
        with pytest.raises(InputError, match=rf"was trained on other content of {what} than"):
            resume(**changed)
    for changed, what in [
        ({"dev": None}, "with the encoded dev batches"),
        ({"made_from": {"dev": "1"}}, "with teacher"),
        ({"made_from": {"dev": "1", "teacher": "2", "pruning": "3"}}, "without pruning"),
    ]:
        with pytest.raises(InputError, match=f"was trained {what}; do so to go on, or start anew"):
            resume(**changed)


def test_fewer_batches_than_were_done_are_named():
    batches = make_batches(25)
    assert int(batches.dataset(skip=7).cardinality()) == 0
    for skip in (-1, 8, 9):
        with pytest.raises(ValueError, match=rf"skip={skip} must lie between 0 and the 7 batches"):
            batches.dataset(skip=skip)


def test_fingerprints_tell_apart_all_that_decides_the_batches():
    def encodings(*rows):
        return [Encoding(ids, segments, truncated=False) for ids, segments in rows]

    one = encodings(([1, 2], [0, 0]), ([3], [0]))
    made = [
        LengthBatches(one, 2),
        LengthBatches(one, 1),
        LengthBatches(one, 2, shuffle=True),
        LengthBatches(one, 2, seed=1),
        LengthBatches(one, 2, pad_token_id=1),
        LengthBatches(encodings(([1], [0]), ([2, 3], [0, 0])), 2),
        LengthBatches(encodings(([1, 2], [0, 1]), ([3], [0])), 2),
        LengthBatches([[e] for e in one], 2),
        LengthBatches(one, 2, [0, 1]),
        LengthBatches(one, 2, [1, 0]),
        LengthBatches(one, 2, [0.0, 1.0]),
        LengthBatches(one, 2, [[0, 0], [1]]),
        LengthBatches(one, 2, [[0, 1], [1]]),
    ]
    assert len({batches.fingerprint() for batches in made}) == len(made)
    again = LengthBatches(encodings(([1, 2], [0, 0]), ([3], [0])), 2, [0, 1])
    assert again.fingerprint() == made[8].fingerprint()
    assert len({batches.inputs_fingerprint() for batches in made}) == 4


def test_fingerprints_of_examples_and_models(tiny_config):
    values = [None, "a", ["a"], {"a": 1}, {"a": 1.0}, ["a", "b"], ["ab"], tiny_config, "\ud800"]
    values += [dataclasses.replace(tiny_config, dropout=0.2), np.array([1, 2])]
    found = [content_fingerprint(value) for value in values]
    assert len(set(found)) == len(values)
    assert all(re.fullmatch("[0-9a-f]{64}", f) for f in found)
    arrays = [np.array([1, 2]), np.array([1, 3]), np.float32(1), np.float32(2)]
    assert len({content_fingerprint([array]) for array in arrays}) == len(arrays)
    assert content_fingerprint(object()) == content_fingerprint(object())
    assert content_fingerprint(dataclasses.replace(tiny_config)) == found[7]
    model = two_layers("ab")
    before = model_fingerprint(model)
    assert model_fingerprint(model) == before
    model.layers[1].bias.assign([0.0, 0.0, 1e-7])
    assert model_fingerprint(model) != before
