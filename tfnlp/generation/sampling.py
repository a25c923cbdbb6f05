"""Sampling of tokens from a distribution."""

import math

import tensorflow as tf

from tfnlp.generation.generation_settings import NEVER

# Bisection steps, after which the range of logits is too small to hold two values.
HALVINGS = 48
TINY = 1e-30


def filtered(scores, sample):
    """Return the logits (..., V) to sample from, after the cuts of a `Sample`.

    They are minus infinity at excluded tokens. Tokens as probable as the last included one are
    included too.
    """
    scores = scores / sample.temperature
    if 0 < sample.top_k < scores.shape[-1]:
        least = tf.math.top_k(scores, sample.top_k).values[..., -1:]
        scores = tf.where(scores < least, NEVER, scores)
    if sample.top_p < 1:
        scores = tf.where(scores > _bound(scores, sample.top_p), scores, NEVER)
    if sample.min_p > 0:
        least = tf.reduce_max(scores, axis=-1, keepdims=True) + math.log(sample.min_p)
        scores = tf.where(scores < least, NEVER, scores)
    return scores


def _bound(scores, top_p):
    """Return the lower bound of the scores of the smallest top-p set, (..., 1).

    It is computed by bisection, since a sort takes a hundred times as long as a pass.
    """
    shares = tf.nn.softmax(scores)
    high = tf.reduce_max(scores, axis=-1, keepdims=True)
    least = tf.where(tf.math.is_finite(scores), scores, high)
    low = tf.reduce_min(least, axis=-1, keepdims=True)
    low -= tf.abs(low) + TINY  # lower at any size of the scores

    def halve(low, high):
        # Tokens above `low` have the share, those above `high` have less.
        middle = low + (high - low) / 2
        above = tf.reduce_sum(tf.where(scores > middle, shares, 0.0), axis=-1, keepdims=True)
        enough = above >= top_p
        return tf.where(enough, middle, low), tf.where(enough, high, middle)

    counter = lambda i, low, high: (i + 1, *halve(low, high))  # noqa: E731
    return tf.while_loop(lambda i, *_: i < HALVINGS, counter, (0, low, high))[1]


def draw(scores, uniform):
    """Return sampled tokens (...) of logits (..., V), by numbers (...) drawn from [0, 1).

    They are the first whose cumulative probability exceeds the number.
    """
    shares = tf.nn.softmax(scores)
    sums = tf.cumsum(shares, axis=-1)
    passed = (sums > uniform[..., None] * sums[..., -1:]) & (shares > 0)
    first = tf.argmax(passed, axis=-1, output_type=tf.int32)
    best = tf.argmax(scores, axis=-1, output_type=tf.int32)
    # Rounding may leave no such token: take the most probable one.
    return tf.where(tf.reduce_any(passed, axis=-1), first, best)
