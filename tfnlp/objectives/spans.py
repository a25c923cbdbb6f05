"""Spans of words to hide, short ones more often (Lan et al. 2020, 'ALBERT', section 3.1)."""

import numpy as np


def span_chances(longest):
    """The probabilities of spans of 1, 2, ... words: p(n) = 1/n over the sum of all 1/k."""
    chances = 1 / np.arange(1, longest + 1)
    return chances / chances.sum()


def draw_spans(room, share, longest, rng):
    """Draws spans until they cover a share of each text's words; one span at least.

    A span's length is drawn first, its place then among those where it fits. Whether there is
    another one is decided before its length is: so lengths follow p(n) to the last span, and
    the expected number of covered words is the share, however the last one ends. (ALBERT's own
    code shortens the last spans to what is left, which has more short ones than p(n).)

    Args:
        room: (B, W) int, the words that stand together from each word on, itself counted; 0
            where a text has no word.
        share: of the words to cover.
        longest: N, the most words of a span.
        rng: a `numpy.random.Generator`.

    Returns:
        (B, W) int, the number of the span that each word is in, from 1 on; 0 outside.
    """
    chances = span_chances(longest)
    lengths = np.arange(1, longest + 1)
    due = share * (room > 0).sum(1)  # words left to cover
    spans, places = np.zeros_like(room), np.arange(room.shape[1])
    active = np.ones(len(room), bool)
    for number in range(1, room.shape[1] + 1):
        goes_on, length, place = rng.random((3, len(room)))
        # With probability q(r) a text that has r words left gets a span. The expected number
        # V(r) = q(r) (E[n] + E[V(r - n)]) is r where V is 0 from 0 on down.
        rest = np.maximum(due[:, None] - lengths, 0) @ chances
        chance = due / (lengths @ chances + rest)
        active &= (goes_on < chance) | (number == 1)
        fits = room.max(1)
        active &= fits > 0
        if not active.any():
            break
        length = np.minimum(np.searchsorted(chances.cumsum(), length) + 1, longest)
        length = np.where(active, np.minimum(length, fits), 0)[:, None]
        free = (room >= length) & (room > 0)
        nth = (place * free.sum(1)).astype(int)
        start = (free.cumsum(1) > nth[:, None]).argmax(1)[:, None]
        covered = (places >= start) & (places < start + length)
        spans[covered] = number
        # What stands before the span ends at it.
        room = np.where(active[:, None] & (places < start), np.minimum(room, start - places), room)
        room = np.where(covered, 0, room)
        due = due - length[:, 0]
    return spans
