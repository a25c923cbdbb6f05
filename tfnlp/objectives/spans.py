"""Random spans of words, with more short ones (Lan et al. 2020, 'ALBERT', section 3.1)."""

import numpy as np


def span_chances(longest):
    """Return the probabilities of spans of 1, 2, ... words: p(n) = 1/n over the sum of all 1/k."""
    chances = 1 / np.arange(1, longest + 1)
    return chances / chances.sum()


def draw_masked_spans(room, share, longest, rng):
    """Draw spans until they cover a share of each text's words, at least one span.

    The length of a span is drawn first, then its place among those where it fits. The decision to
    add a span precedes its length. So lengths follow p(n) up to the last span, and the expected
    number of covered words is the share. (ALBERT's own code shortens the last spans to the rest,
    which yields more short ones than p(n).)

    Args:
        room: (B, W) int, the number of adjacent words from each word on, including itself; 0 where
            a text has no word.
        share: the share of words to cover.
        longest: N, the maximum number of words of a span.
        rng: a `numpy.random.Generator`.

    Returns:
        (B, W) int, the number of each word's span, from 1 on; 0 outside spans.
    """
    chances = span_chances(longest)
    lengths = np.arange(1, longest + 1)
    left = share * (room > 0).sum(1)  # words left to cover
    spans, places = np.zeros_like(room), np.arange(room.shape[1])
    active = np.ones(len(room), bool)
    for number in range(1, room.shape[1] + 1):
        begin_draw, length, place = rng.random((3, len(room)))
        # A text with r words left gets a span with probability q(r). The expected number
        # of covered words, V(r) = q(r) (E[n] + E[V(r - n)]), equals r if V is 0 for r <=
        # 0.
        rest = np.maximum(left[:, None] - lengths, 0) @ chances
        chance = left / (lengths @ chances + rest)
        active &= (begin_draw < chance) | (number == 1)
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
        # Runs of words before the span now end at it.
        room = np.where(active[:, None] & (places < start), np.minimum(room, start - places), room)
        room = np.where(covered, 0, room)
        left = left - length[:, 0]
    return spans
