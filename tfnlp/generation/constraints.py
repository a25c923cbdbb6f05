"""Constraints applied to the scores of the next token."""

import itertools

import numpy as np
import tensorflow as tf

from tfnlp.generation.generation_settings import NEVER


class Rules:
    """`Constraints` applied to a search of known sizes; `numpy_rules.py` has them for one text.

    They equal the logits processors of `transformers`, in their order, except that padding is not
    a token: there a repeated n-gram may begin with it.

    Args:
        settings: a `SearchSettings`.
        prompt: (B, P) int32, padded at the left.
        prompt_mask: (B, P), 1 at real tokens.
        beams: K, the texts of each prompt.
    """

    def __init__(self, settings, prompt, prompt_mask, beams):
        self.constraints, self.steps, self.ends = (
            settings.constraints,
            settings.steps,
            settings.ends,
        )
        self._prompt = tf.repeat(prompt, beams, axis=0)  # (B * K, P)
        self._width = prompt.shape[1]
        padding = self._width - tf.reduce_sum(tf.cast(prompt_mask, tf.int32), axis=1)
        self._first = tf.repeat(padding, beams)[:, None]  # (B * K, 1), where each text begins

    def __call__(self, scores, tokens, number):
        """Return the constrained scores of token `number`, (B, K, V), minus infinity if forbidden.

        Args:
            scores: (B, K, V) float32.
            tokens: (B, K, steps) int32, those of each text; entries from `number` on are ignored.
            number: number of tokens of each text, a scalar.
        """
        rules = self.constraints
        shape, vocabulary = scores.shape, scores.shape[-1]
        scores = tf.reshape(scores, (-1, vocabulary))  # (R, V)
        history = tf.concat([self._prompt, tf.reshape(tokens, (-1, self.steps))], axis=1)
        length = self._width + number
        if rules.repetition_penalty != 1:
            penalty, places = rules.repetition_penalty, tf.range(history.shape[1])
            real = (places >= self._first) & (places < length)
            present = _marked(history, real, vocabulary)
            changed = tf.where(scores < 0, scores * penalty, scores / penalty)
            scores = tf.where(present, changed, scores)
        size = rules.no_repeat_ngram_size
        if 0 < size <= history.shape[1]:
            repeated = _ends_of_repeated(history, self._first, length, size, vocabulary)
            scores = tf.where(repeated, NEVER, scores)
        scores = self._without_forbidden(scores, history, length)
        if rules.min_new_tokens:
            is_end = np.isin(np.arange(vocabulary), self.ends)
            scores = tf.where(is_end & (number < rules.min_new_tokens), NEVER, scores)
        for token, place in ((rules.forced_first, 0), (rules.forced_last, self.steps - 1)):
            if token is not None:
                alone = tf.where(tf.range(vocabulary) == token, 0.0, NEVER)
                scores = tf.where(number == place, alone, scores)
        if rules.renormalize:
            # Where no token is left, a softmax has no value.
            scores = tf.where(scores > NEVER, tf.nn.log_softmax(scores), NEVER)
        return tf.reshape(scores, shape)

    def _without_forbidden(self, scores, history, length):
        vocabulary = scores.shape[-1]
        # An end token alone is never forbidden here, as in `transformers`.
        ends = {(end,) for end in self.ends}
        rows = sorted({*self.constraints.forbidden} - ends)
        rows.sort(key=len)
        for size, group in itertools.groupby(rows, key=len):
            group = np.array(list(group), "int32")  # (W, size)
            last = np.zeros((len(group), vocabulary), bool)
            last[np.arange(len(group)), group[:, -1]] = True
            if size == 1:
                scores = tf.where(last.any(axis=0), NEVER, scores)
                continue
            if size > history.shape[1]:
                continue
            begun = _last_tokens(history, length, size - 1)
            begun = tf.reduce_all(begun[:, None] == group[:, :-1], axis=2)  # (R, W)
            begun &= length - (size - 1) >= self._first  # no sequence begins in padding
            banned = tf.matmul(tf.cast(begun, tf.float32), tf.cast(last, tf.float32)) > 0
            scores = tf.where(banned, NEVER, scores)
        return scores


def _last_tokens(history, length, count):
    """Return the last `count` of the first `length` tokens of (R, L), (R, count)."""
    start = tf.stack([0, tf.maximum(length - count, 0)])
    return tf.slice(history, start, (history.shape[0], count))


def _ends_of_repeated(history, first, length, size, vocabulary):
    """Return (R, V) boolean, true at tokens that would complete a repeated n-gram."""
    windows = history.shape[1] - size + 1
    starts = tf.range(windows)
    same = (starts >= first) & (starts + size <= length)
    last = _last_tokens(history, length, size - 1) if size > 1 else None
    for i in range(size - 1):
        same &= history[:, i : i + windows] == last[:, i : i + 1]
    return _marked(history[:, size - 1 :], same, vocabulary)


def _marked(ids, where, vocabulary):
    """Return (R, V) boolean, true at the ids of (R, L) where `where` (R, L) is true."""
    rows = tf.broadcast_to(tf.range(ids.shape[0])[:, None], ids.shape)
    columns = tf.where(where, ids, vocabulary)  # one more, for all others
    places = tf.stack([rows, columns], axis=-1)
    marks = tf.scatter_nd(places, tf.ones_like(ids), (ids.shape[0], vocabulary + 1))
    return marks[:, :vocabulary] > 0
