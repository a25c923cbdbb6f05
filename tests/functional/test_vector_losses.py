"""Losses of vectors against sentence-transformers, and gradients."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.functional import vector_losses as ours

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(6, 3, 8)).astype("float32")
LABELS = RNG.choice([0, 0.2, 0.6, 1], 6).astype("float32")
SAME = np.array([1, 0, 1, 1, 0, 0], "float32")


def symmetric(vectors, labels):
    return ours.ranking_loss(vectors, labels, symmetric=True)


def nested(vectors, labels):
    return ours.matryoshka_loss(ours.cosine_loss, vectors, labels, dims=(8, 4, 2))


BOTH = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
# Ours, the texts of an example, its labels, and theirs.
CASES = {
    "ranking": (ours.ranking_loss, 3, LABELS, lambda of, x: of.MultipleNegativesRankingLoss(x)),
    "symmetric": (symmetric, 3, LABELS, lambda of, x: of.MultipleNegativesRankingLoss(x, **BOTH)),
    "cosine": (ours.cosine_loss, 2, LABELS, lambda of, x: of.CosineSimilarityLoss(x)),
    "cosent": (ours.cosent_loss, 2, LABELS, lambda of, x: of.CoSENTLoss(x)),
    "triplet": (ours.triplet_loss, 3, LABELS, lambda of, x: of.TripletLoss(x)),
    "contrastive": (ours.contrastive_loss, 2, SAME, lambda of, x: of.ContrastiveLoss(x)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_loss_and_its_gradient_are_those_of_sentence_transformers(name):
    torch = pytest.importorskip("torch")
    losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    loss, count, labels, make = CASES[name]

    class Encoder(torch.nn.Module):
        def forward(self, features):
            return {"sentence_embedding": features["vectors"]}

    columns = [torch.tensor(VECTORS[:, i], requires_grad=True) for i in range(count)]
    expected = make(losses, Encoder())([{"vectors": x} for x in columns], torch.tensor(labels))
    expected.backward()
    vectors = tf.Variable(VECTORS[:, :count])
    with tf.GradientTape() as tape:
        value = loss(vectors, labels)
    assert float(value) == pytest.approx(expected.item(), rel=1e-6, abs=1e-6)
    gradient = tf.convert_to_tensor(tape.gradient(value, vectors))
    theirs = np.stack([x.grad.numpy() for x in columns], 1)
    np.testing.assert_allclose(gradient, theirs, rtol=1e-5, atol=1e-6)


def test_a_matryoshka_loss_is_that_of_the_first_entries():
    expected = sum(float(ours.cosine_loss(VECTORS[:, :2, :dim], LABELS)) for dim in (8, 4, 2))
    assert float(nested(VECTORS[:, :2], LABELS)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"cosent", "symmetric"}))
def test_an_example_of_weight_0_does_not_count(name):
    loss, count, labels, _ = CASES[name]
    weights = np.array([1, 0, 1, 1, 1, 1], "float32")
    rest = float(loss(VECTORS[:, :count], labels, weights))
    each = [
        float(loss(VECTORS[:, :count], labels, np.eye(6, dtype="float32")[i])) for i in range(6)
    ]
    assert rest == pytest.approx(np.mean(each[:1] + each[2:]), rel=1e-5)
