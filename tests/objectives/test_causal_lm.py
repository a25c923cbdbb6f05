"""The next token: losses, what predictions see, and the memory of each lane."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.objectives.test_token_stream import Tokens, large_corpus
from tests.programs import found_by
from tfnlp.models import BertConfig, Gpt2Config, TransformerXLConfig, build_model
from tfnlp.objectives import CausalLM
from tfnlp.objectives.lane_memory import lane_inputs
from tfnlp.utils.errors import InputError

SIZES = {"vocabulary_size": 50, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
SIZES |= {"intermediate_dim": 32, "dropout": 0.0, "initializer_range": 0.4}
GPT2 = Gpt2Config(**SIZES, max_length=24, embedding_dropout=0.0, attention_dropout=0.0)
XL = TransformerXLConfig(
    **SIZES, cutoffs=(10, 30), div_value=2, memory_length=6, clamp_length=None
)


def transformer_xl(**fields):
    return TransformerXLConfig(**SIZES | {"cutoffs": (), "same_length": False} | fields)


def memory_of(trained):
    """The training memory's variables, as NumPy has them."""
    lanes = trained.training_memory
    return [np.array(v) for v in (lanes.states, lanes.filled)]


def rows(ids, continues=None):
    """Inputs and labels of rows of ids (B, L + 1)."""
    inputs = {"token_ids": ids[:, :-1], "segment_ids": 0 * ids[:, :-1]}
    inputs |= {"padding_mask": inputs["segment_ids"] + 1, "next_token_ids": ids[:, 1:]}
    if continues is not None:
        inputs |= lane_inputs(len(ids), continues)
    return inputs, ids[:, 1:]


def test_the_loss_by_hand():
    logits = np.log([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], [[0.2, 0.2, 0.6], [0.4, 0.4, 0.2]]])
    labels = np.array([[0, 2], [1, -100]])
    probabilities = [0.5, 0.7, 0.2]
    objective, outputs = CausalLM(), {"logits": logits.astype("float32")}
    losses = objective.losses(labels, outputs)
    assert float(losses["causal_lm_loss"]) == pytest.approx(-np.log(probabilities).mean())
    scores = objective.scores(labels, outputs)
    total, count = scores["log_likelihood"]
    assert float(total) == pytest.approx(np.log(probabilities).sum(), rel=1e-6) and count == 3
    assert [float(x) for x in scores["accuracy"]] == [2, 3]
    outputs = {"log_probabilities": np.log([[0.5, 0.7], [0.2, 1.0]]).astype("float32")}
    again = objective.losses(labels, outputs)
    assert float(again["causal_lm_loss"]) == pytest.approx(-np.log(probabilities).mean())
    assert float(objective.scores(labels, outputs)["log_likelihood"][0]) == pytest.approx(total)
    # Two replicas' worth of weights: a row of weight 0 counts nothing.
    weighted = objective.losses(labels, outputs, np.array([1.0, 0.0]))
    assert float(weighted["causal_lm_loss"]) == pytest.approx(-np.log([0.5, 0.7]).mean())


@pytest.mark.parametrize("config", [GPT2, XL], ids=["gpt2", "transformer_xl"])
def test_predictions_see_what_is_before_them_alone(config, no_graphs):
    objective, model = CausalLM(), build_model(config, "causal_lm")
    trained = objective.trained(model)
    ids = np.random.default_rng(0).integers(2, 50, (2, 13))
    inputs, labels = rows(ids)
    outputs = trained(inputs)
    whole = model({k: inputs[k] for k in ("token_ids", "segment_ids", "padding_mask")})["logits"]
    log_probs = np.take_along_axis(tf.nn.log_softmax(whole).numpy(), labels[..., None], -1)
    # Of the labels alone as of all tokens.
    loss = objective.losses(labels, outputs)["causal_lm_loss"]
    assert float(loss) == pytest.approx(-log_probs.mean(), abs=1e-5)
    for place in (1, 6, 11):
        other = ids.copy()
        other[:, place] = (ids[:, place] + 7) % 48 + 2
        changed, _ = rows(other)
        # The same labels, so that it is the reading alone that differs.
        found = trained(changed | {"next_token_ids": labels})
        (name,) = outputs
        moved = np.any(np.array(found[name]) != np.array(outputs[name]), axis=0)
        moved = moved.any(-1) if moved.ndim == 2 else moved
        assert not moved[:place].any() and moved[place]


def test_a_memory_is_what_one_long_segment_sees(no_graphs):
    config = transformer_xl(memory_length=12)
    objective = CausalLM(memory=True)
    model = build_model(config, "causal_lm", memory=True)
    trained = objective.trained(model, batch_size=3)
    ids = np.random.default_rng(1).integers(2, 50, (3, 17))
    alone = CausalLM().trained(build_model(config, "causal_lm"))
    alone.set_weights(model.get_weights())
    whole = alone(rows(ids)[0])["log_probabilities"].numpy()
    for training in (True, False):
        found = [
            trained(rows(ids[:, 4 * i : 4 * i + 5], continues=i > 0)[0], training=training)
            for i in range(4)
        ]
        found = np.concatenate([f["log_probabilities"] for f in found], axis=1)
        np.testing.assert_allclose(found, whole, atol=1e-5)
    # With less memory the later segments differ.
    short = build_model(transformer_xl(memory_length=3), "causal_lm", memory=True)
    short.set_weights(model.get_weights())
    trained = objective.trained(short, batch_size=3)
    found = [trained(rows(ids[:, 4 * i : 4 * i + 5], i > 0)[0], training=True) for i in range(4)]
    found = np.concatenate([f["log_probabilities"] for f in found], axis=1)
    np.testing.assert_allclose(found[:, :4], whole[:, :4], atol=1e-5)
    assert np.abs(found[:, 4:] - whole[:, 4:]).max(0).min() > 1e-3


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
            return objective.losses(y, y_pred)[objective.loss_name]

    trainer = Trainer()
    trainer.compile(optimizer, jit_compile=False)
    trainer.optimizer.build(trainer.trainable_variables)
    return trainer


def test_memory_is_part_of_the_state_and_dev_has_its_own(no_graphs):
    objective, corpus = CausalLM(memory=True), large_corpus(documents=20)
    batches = objective.batches(corpus, Tokens(), 4, 6, seed=3)
    dev = objective.batches(large_corpus(7), Tokens(), 4, 6, shuffle=False)
    assert len(batches) >= 8

    def start():
        keras.utils.set_random_seed(0)
        model = build_model(XL, "causal_lm", memory=True)
        optimizer = keras.optimizers.Adam(0.01)
        return compiled(objective.trained(model, batch_size=4), objective, optimizer)

    def state(trainer):
        return [np.array(v) for v in [*trainer.variables, *trainer.optimizer.variables]]

    whole = start()
    for inputs, labels in batches.epoch(0):
        whole.train_on_batch(inputs, labels)
    names = [v.path for v in whole.variables if "memory" in v.path]
    assert len(names) == 4 and not any("memory" in v.path for v in whole.trainable_variables)
    assert memory_of(whole.trained)[1].tolist() == [6] * 4

    killed = start()
    for number, (inputs, labels) in enumerate(batches.epoch(0)):
        if number == 5:
            break
        killed.train_on_batch(inputs, labels)
    # A dev pass in between has a memory of its own, which begins anew.
    before = memory_of(killed.trained)
    passes = [[float(killed.test_on_batch(*b)) for b in dev.epoch()] for _ in range(2)]
    assert passes[0] == passes[1]
    for a, b in zip(memory_of(killed.trained), before, strict=True):
        np.testing.assert_array_equal(a, b)
    resumed = start()
    for variable, value in zip(
        [*resumed.variables, *resumed.optimizer.variables], state(killed), strict=True
    ):
        variable.assign(value)
    for inputs, labels in batches.epoch(0, skip=5):
        resumed.train_on_batch(inputs, labels)
    metrics = {v.path for v in whole.metrics_variables}
    named = [*whole.variables, *whole.optimizer.variables]
    for variable, a, b in zip(named, state(resumed), state(whole), strict=True):
        if variable.path not in metrics and "dev_memory" not in variable.path:
            np.testing.assert_array_equal(a, b)
    # The next epoch begins without a memory.
    (first, labels), *_ = batches.epoch(1)
    again = start().trained
    again.set_weights(whole.trained.get_weights())
    found = again(first, training=True)["log_probabilities"]
    for v in (again.training_memory.states, again.training_memory.filled):
        v.assign(0 * v)
    np.testing.assert_array_equal(again(first, training=True)["log_probabilities"], found)


def test_a_segment_that_broke_leaves_the_memory(no_graphs):
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


def test_lanes_on_two_devices_are_those_on_one(tmp_path):
    found = found_by("objectives/mirrored_memory.py", tmp_path)
    assert sum("memory" in name for name in found) == 4
    states = {name for name in found if name.endswith("memory/states")}
    assert len(states) == 2 and max(found[name] for name in states) < 1e-4, found
    assert max(found[name] for name in found.keys() - states) < 2e-6, found


def test_what_does_not_fit_is_one_sentence():
    tokens = Tokens()
    with pytest.raises(InputError, match="fit the family 'bert', whose tokens see those after"):
        CausalLM().check(BertConfig(), tokens)
    with pytest.raises(InputError, match="memory=True does not fit the family Gpt2, which has no"):
        CausalLM(memory=True).check(GPT2, tokens)
    endless = transformer_xl(memory_length=None)
    with pytest.raises(InputError, match="TransformerXL's memory_length is None; give it one"):
        CausalLM(memory=True).check(endless, tokens)
    CausalLM(memory=True).check(XL, tokens)
    without = build_model(XL, "causal_lm")
    with pytest.raises(InputError, match="memory=True does not fit model transformerxl, which"):
        CausalLM(memory=True).trained(without, 4)
    with pytest.raises(InputError, match="batch_size=None leaves open how many lanes"):
        CausalLM(memory=True).trained(build_model(XL, "causal_lm", memory=True))
