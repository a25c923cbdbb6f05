"""Recurrent networks as language models: each lane's state goes on, and texts are scored by it."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.models.recurrent_witness import next_logits, read, weights_of
from tests.models.test_recurrent import SIZES, with_random_biases
from tests.objectives.batches.test_token_stream import Tokens
from tests.objectives.test_causal_lm import rows
from tfnlp.models import RecurrentConfig, build_model
from tfnlp.objectives import CausalLM, Corpus
from tfnlp.objectives.evaluation_settings import LmEvaluation
from tfnlp.objectives.lm_evaluation import TextStream, evaluate_causal_lm, perplexity
from tfnlp.utils.errors import InputError


def log_probabilities(model, ids):
    """Of each token of ids (L + 1,) after those before it, (L,), by NumPy."""
    weights = weights_of(model)
    table = weights["embeddings/token_table"]
    x, _ = read(model.text_config, weights, table[ids[:-1]], model.text_config.hidden_dim)
    logits = next_logits(model.text_config, weights, x)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logs[np.arange(len(logs)), ids[1:]]


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_lanes_carry_their_state_and_gradients_stay_in_the_segment(cell):
    config = RecurrentConfig(cell=cell, dropout=0.0, **SIZES)
    model = with_random_biases(build_model(config, "causal_lm", memory=True))
    objective = CausalLM(memory=True)
    trained = objective.trained(model, batch_size=2)
    ids = np.random.default_rng(0).integers(0, 60, (2, 11))
    expected = -np.stack([log_probabilities(model, row) for row in ids])
    for again in range(2):  # an epoch begins without a state
        for begin in (0, 5):
            inputs, labels = rows(ids[:, begin : begin + 6], continues=begin > 0)
            loss = objective.losses(labels, trained(inputs, training=True))["causal_lm_loss"]
            due = expected[:, begin : begin + 5].mean()
            assert float(loss) == pytest.approx(due, abs=1e-5), (again, begin)
            if not again and not begin:  # dev has a state of its own
                trained(rows(ids[:, 4:10], continues=False)[0])
    inputs, labels = rows(ids[:, :6], continues=False)
    trained(inputs, training=True)
    inputs, labels = rows(ids[:, 5:11], continues=True)
    with tf.GradientTape() as tape:
        loss = objective.losses(labels, trained(inputs, training=True))["causal_lm_loss"]
    found = tape.gradient(loss, model.trainable_variables)
    # By the model itself, to which the state is a number like any.
    none = np.zeros((2, 2, 0, 16), "float32")
    first = {k: ids[:, :5].astype("int32") for k in ("token_ids",)}
    first |= {"segment_ids": 0 * first["token_ids"], "padding_mask": 0 * first["token_ids"] + 1}
    memory = model(first | {"memory": none})["memory"].numpy()
    second = first | {"token_ids": ids[:, 5:10].astype("int32"), "memory": memory}
    with tf.GradientTape() as tape:
        logits = model(second)["logits"]
        loss = objective.losses(labels, {"logits": logits})["causal_lm_loss"]
    for a, b in zip(found, tape.gradient(loss, model.trainable_variables), strict=True):
        a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_states_carry_over_in_half_precision():
    ids = np.random.default_rng(0).integers(0, 60, (2, 11))
    config, objective = RecurrentConfig(cell="lstm", dropout=0.0, **SIZES), CausalLM(memory=True)
    weights, losses = with_random_biases(build_model(config, "causal_lm")).get_weights(), []
    for policy in ("float32", "mixed_bfloat16"):
        keras.config.set_dtype_policy(policy)
        model = build_model(config, "causal_lm", memory=True)
        model.set_weights(weights)
        trained = objective.trained(model, batch_size=2)
        # The second segment with the state of the first, and without.
        for begin, continues in ((0, False), (5, True), (5, False)):
            inputs, labels = rows(ids[:, begin : begin + 6], continues)
            found = objective.losses(labels, trained(inputs, training=True))
            losses.append(float(found["causal_lm_loss"]))
    np.testing.assert_allclose(losses[3:], losses[:3], atol=0.01)
    assert abs(losses[4] - losses[5]) > 0.03


def test_texts_are_scored_with_the_state_of_earlier_ones():
    config = RecurrentConfig(cell="gru", **SIZES)
    model = with_random_biases(build_model(config, "causal_lm"))
    ids = np.random.default_rng(1).integers(0, 60, 40).astype("int32")
    stream = TextStream(ids, 39, 1)
    going_on = build_model(config, "causal_lm", memory=True)
    going_on.set_weights(model.get_weights())
    found = perplexity(going_on, stream, max_length=7, batch_size=1)
    due = -log_probabilities(model, ids).mean()
    assert found["tokens"] == 39 and found["cross_entropy"] == pytest.approx(due, abs=1e-5)

    tokenizer = Tokens()
    CausalLM(memory=True).check(config, tokenizer)
    both = RecurrentConfig(bidirectional=True, **SIZES)
    with pytest.raises(InputError, match="does not fit the family 'recurrent'"):
        CausalLM().check(both, tokenizer)
    for given in ({"memory_lengths": (2,)}, {"stride": 3}):
        (name,) = given
        with pytest.raises(InputError, match=f"{name}=.* has no effect on a recurrent network"):
            evaluate_causal_lm(model, tokenizer, ["a"], LmEvaluation(**given))


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_new_output_bias_starts_at_the_log_shares_of_tokens(tokenizer, precision):
    """Each token counts 0.1 times more; the end of each document is one, and padding is none."""
    keras.config.set_dtype_policy(precision)
    documents = [[[5, 5, 6]], [[7], [5]]]
    batches = CausalLM(memory=True).batches(Corpus.from_documents(documents), tokenizer, 1, 2)
    size = tokenizer.vocabulary_size
    config = RecurrentConfig(size, "gru", 1, 4, initializer_range=1e-6)
    model = build_model(config, "causal_lm", memory=True)
    CausalLM(memory=True).initialise_head(model, batches)
    counts = np.full(size, 0.1)
    counts[[5, 6, 7, batches.end_token_id]] += [3, 1, 1, 2]
    bias, expected = model.get_layer("lm_bias").bias, np.log(counts / (7 + 0.1 * size))
    np.testing.assert_allclose(bias, expected, rtol=1e-6)
    inputs = {name: np.ones((1, 3), "int32") for name in ("token_ids", "padding_mask")}
    inputs |= {"segment_ids": np.zeros((1, 3), "int32"), "memory": np.zeros((1, 1, 0, 4))}
    logits = model(inputs)["logits"][0, 2]
    np.testing.assert_allclose(logits, expected, atol=1e-5 if precision == "float32" else 0.05)
    # A learned one stays.
    bias.assign(np.arange(size))
    CausalLM(memory=True).initialise_head(model, batches)
    np.testing.assert_array_equal(bias, np.arange(size))
    plain = build_model(dataclasses.replace(config, output_bias=False), "causal_lm", memory=True)
    CausalLM(memory=True).initialise_head(plain, batches)
    assert "lm_bias" not in {layer.name for layer in plain.layers}
