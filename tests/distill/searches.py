"""What Keras writes, as files are to write it too."""

import keras
import numpy as np
import tensorflow as tf


def without_xla(searcher):
    """A `Generator` or `Translator` whose search is a graph that XLA does not compile first.

    Compiling takes seconds for each of the few batches of a test.
    """
    searcher._run = tf.function(searcher._search, autograph=False)
    return searcher


def train_a_little(model, inputs, labels, weights, rate, steps):
    """Trains a model that gives logits on random rows; the last loss.

    Args:
        inputs: of the model, a dict of arrays of a row for each text.
        labels, weights: (texts, L), of the logits at the first L places.
    """
    optimizer = keras.optimizers.Adam(rate)

    @tf.function
    def step(inputs, labels, weights):
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)["logits"][:, : labels.shape[1]]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)
        variables = [v.value for v in model.trainable_variables]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    rng, weights = np.random.default_rng(0), weights.astype("float32")
    for _ in range(steps):
        some = rng.integers(0, len(labels), 32)
        arrays = {name: x[some] for name, x in inputs.items()}, labels[some], weights[some]
        loss = step(*tf.nest.map_structure(tf.constant, arrays))
    return loss


def assert_same_texts(found, expected):
    """Compare the `Generated` of each prompt, with scores where there are some."""
    for ours, theirs in zip(found, expected, strict=True):
        assert [x.token_ids for x in ours] == [x.token_ids for x in theirs]
        assert [(x.text, x.ended) for x in ours] == [(x.text, x.ended) for x in theirs]
        assert [x.score is None for x in ours] == [x.score is None for x in theirs]
        scores = [[x.score or 0 for x in texts] for texts in (ours, theirs)]
        np.testing.assert_allclose(*scores, atol=1e-4)


def padded(rows, length, pad_token_id):
    """Rows of ids as arrays (rows, length): the ids, and the mask of real ones."""
    ids = np.full((len(rows), length), pad_token_id, "int32")
    for place, row in zip(ids, rows, strict=True):
        place[: len(row)] = row
    return ids, np.array([np.arange(length) < len(row) for row in rows], "int32")
