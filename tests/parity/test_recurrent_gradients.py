"""Recurrent language models against PyTorch on the same weights: losses and gradients."""

import numpy as np
import pytest
import tensorflow as tf
import torch

from tests.models.test_recurrent import SIZES, inputs_of, with_random_biases
from tests.parity.compare import check_gradients
from tfnlp.functional.weighted_losses import cross_entropy
from tfnlp.models import RecurrentConfig, build_model

LAYERS = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
# The gates of Keras, in PyTorch's order.
ORDERS = {"rnn": [0], "lstm": [0, 1, 2, 3], "gru": [1, 0, 2]}


def reordered(x, cell, axis):
    parts = np.split(np.asarray(x), len(ORDERS[cell]), axis)
    return np.concatenate([parts[i] for i in ORDERS[cell]], axis)


def copy_cell(weights, path, cell, theirs, suffix=""):
    """Gives a cell of PyTorch a Keras cell's weights; yields (ours, what its gradient is)."""

    def gradient(name):
        return lambda: reordered(getattr(theirs, name).grad.numpy(), cell, 0)

    for ours, name in (("kernel", "weight_ih"), ("recurrent_kernel", "weight_hh")):
        value = reordered(weights[f"{path}/{ours}"], cell, 1).T
        getattr(theirs, name + suffix).data = torch.tensor(value)
        found = gradient(name + suffix)
        yield weights[f"{path}/{ours}"], lambda found=found: found().T
    bias = np.asarray(weights[f"{path}/bias"])
    rows = bias if cell == "gru" else np.stack([bias, 0 * bias])
    for row, name in zip(rows, ("bias_ih", "bias_hh"), strict=True):
        getattr(theirs, name + suffix).data = torch.tensor(reordered(row, cell, 0))
    first, second = gradient(f"bias_ih{suffix}"), gradient(f"bias_hh{suffix}")
    both = (lambda: np.stack([first(), second()])) if cell == "gru" else first
    yield weights[f"{path}/bias"], both


def parameter(weight):
    return torch.tensor(np.asarray(weight), requires_grad=True)


@pytest.mark.parametrize("cell", LAYERS)
def test_gradients_of_a_language_model_are_those_of_pytorch(cell):
    config = RecurrentConfig(cell=cell, **SIZES)
    model = with_random_biases(build_model(config, "causal_lm"))
    weights = {w.path: w for w in model.weights}
    rng = np.random.default_rng(0)
    ids, labels = rng.integers(0, 60, (2, 3, 8))
    theirs = LAYERS[cell](16, 16, num_layers=2, batch_first=True)
    named = []
    for i in range(2):
        path = f"forward_{i}/{ {'rnn': 'simple_rnn', 'lstm': 'lstm', 'gru': 'gru'}[cell] }_cell"
        named += copy_cell(weights, path, cell, theirs, f"_l{i}")
    table = parameter(weights["embeddings/token_table"])
    bias = parameter(weights["lm_bias/bias"])
    named.append((weights["embeddings/token_table"], lambda: np.asarray(table.grad)))
    named.append((weights["lm_bias/bias"], lambda: np.asarray(bias.grad)))
    outputs, _ = theirs(table[torch.tensor(ids)])
    logits = outputs @ table.T + bias
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 60), torch.tensor(labels.ravel()))
    loss.backward()
    with tf.GradientTape() as tape:
        ours = cross_entropy(tf.constant(labels, "int32"), model(inputs_of(ids))["logits"])
    assert abs(float(ours) - float(loss)) < 1e-5
    assert len(named) == len(model.trainable_variables)
    check_gradients(tape, ours, [(v, found(), False) for v, found in named])
