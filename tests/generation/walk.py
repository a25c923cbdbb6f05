"""A decoder walked on by random tokens, for tests that compare it with the whole model."""

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
