"""Convolutional networks and bags against PyTorch with the same weights: losses and gradients."""

import numpy as np
import pytest
import tensorflow as tf
import torch

from tests.models.test_recurrent import inputs_of, with_random_biases
from tests.models.test_word_models import BAG, CNN
from tests.parity.compare import check_gradients, near
from tfnlp.functional.weighted_losses import cross_entropy
from tfnlp.models import build_model

F = torch.nn.functional


def pooled_by_pytorch(config, weights, ids):
    """The vector of one text, of its real tokens (L,), by PyTorch's own operations."""
    x = F.embedding(ids, weights["embeddings/token_table"])
    if config is CNN:
        x = x + F.embedding(ids, weights["static_embeddings/token_table"])
        largest = []
        for width in config.filter_widths:
            kernel = weights[f"convolution_{width}/kernel"].permute(2, 1, 0)
            bias = weights[f"convolution_{width}/bias"]
            maps = F.conv1d(x.T[None], kernel, bias, padding=width - 1)
            largest.append(F.relu(maps).amax(2)[0])
        return torch.cat(largest)
    hashes, rows = ids, [x]
    for n in range(1, config.word_ngrams):
        hashes = (hashes[:-1] * 1009 + ids[n:]) % config.buckets
        rows.append(F.embedding(hashes, weights["ngram_embeddings/token_table"]))
    return torch.cat(rows).mean(0)


@pytest.mark.parametrize("config", [CNN, BAG], ids=["multichannel", "bag"])
@pytest.mark.parametrize("length", [1, 9])
def test_losses_and_gradients_are_those_of_pytorch(config, length):
    model = with_random_biases(build_model(config, "classifier", 3))
    theirs = {w.path: torch.tensor(np.asarray(w), requires_grad=True) for w in model.weights}
    rng = np.random.default_rng(0)
    ids, labels = rng.integers(1, 60, (3, length)), rng.integers(0, 3, 3)
    mask = np.ones((3, length))
    mask[1, (length + 1) // 2 :] = 0
    with tf.GradientTape() as tape:
        logits = model(inputs_of(ids, mask))["logits"]
        loss = tf.reduce_mean(cross_entropy(labels, logits))
    texts = [torch.tensor(row[real == 1]) for row, real in zip(ids, mask, strict=True)]
    pooled = torch.stack([pooled_by_pytorch(config, theirs, text) for text in texts])
    expected = pooled @ theirs["classifier/kernel"] + theirs["classifier/bias"]
    near(logits, expected.detach().numpy(), 1e-5)
    F.cross_entropy(expected, torch.tensor(labels)).backward()
    named = [
        (w, theirs[w.path].grad.numpy(), False)
        for w in model.trainable_weights
        if theirs[w.path].grad is not None
    ]
    assert len(named) >= 3
    check_gradients(tape, loss, named)
