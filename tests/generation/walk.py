"""A decoder walked on by random tokens, for tests that compare it with the whole model."""

import numpy as np
import tensorflow as tf


def random_steps(decoder, state, texts, vocabulary_size, rng, steps=4):
    """Yields after each step its logits, a decoder's K texts of each prompt, and its state.

    Args:
        texts: for each prompt a list of K lists of ids, what the decoder has read.
        rng: draws which text each goes on from, and its next token.
    """
    shape = len(texts), len(texts[0])
    for number in range(steps):
        parents = rng.integers(0, shape[1], shape).astype("int32")
        tokens = rng.integers(0, vocabulary_size, shape).astype("int32")
        texts = [
            [[*of[parent], int(token)] for parent, token in zip(*how, strict=True)]
            for of, *how in zip(texts, parents, tokens, strict=True)
        ]
        logits, state = decoder.step(tf.constant(tokens), tf.constant(parents), number, state)
        yield logits, texts, state


def left_padded(rng):
    """Three prompts of unequal lengths, and their ids and mask, (3, 6)."""
    prompts = [rng.integers(0, 60, n).tolist() for n in (1, 5, 3)]
    ids = np.array([[9] * (6 - len(p)) + p for p in prompts], "int32")
    mask = np.array([[0] * (6 - len(p)) + [1] * len(p) for p in prompts], "int32")
    return prompts, tf.constant(ids), tf.constant(mask)


def logits_after(model, rows):
    """The logits after each list of ids, by the whole model, each by itself."""
    found = []
    for row in rows:
        ids = np.array([row], "int32")
        more = {}
        if model.head == "permutation_lm":  # one position more, which is asked for
            ids = np.pad(ids, ((0, 0), (0, 1)), constant_values=5)
            length = ids.shape[1]
            more["permutation_order"] = np.arange(length, dtype="int32")[None]
            more["target_mapping"] = np.eye(length, dtype="int32")[None, -1:]
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        found.append(model(inputs | more)["logits"][0, -1])
    return np.stack(found)


def check_steps_equal_the_whole_model(model, decoder):
    """Asserts that a decoder gives its model's logits, with padding; returns the last state."""
    rng = np.random.default_rng(0)
    prompts, ids, mask = left_padded(rng)
    logits, state = decoder.start(ids, mask, beams=3, steps=4)
    np.testing.assert_allclose(logits, logits_after(model, prompts), atol=1e-5)
    begun = [[p] * 3 for p in prompts]
    steps = list(random_steps(decoder, state, begun, 60, rng))
    for logits, texts, _ in steps:
        for found, of in zip(logits, texts, strict=True):
            np.testing.assert_allclose(found, logits_after(model, of), atol=1e-5)
    return steps[-1][2]
