"""Batches of permutation language modelling: segments, targets and factorisation orders.

Yang et al. 2019, 'XLNet', sections 2.2 to 2.5; the contents follow the release (data_utils.py).
"""

import numpy as np
import tensorflow as tf

from tfnlp.objectives.lane_memory import lane_inputs, lane_signature
from tfnlp.objectives.special_token_template import SpecialTokenTemplate
from tfnlp.objectives.token_stream import Lane, StreamBatches, as_inputs
from tfnlp.utils.errors import InputError

# The input with the predicted positions, (B, P).
TARGETS = "target_positions"


class PermutationBatches(StreamBatches):
    """Segments of a stream, with the predicted spans and the factorisation order.

    A segment is a pair of texts A and B in the tokenizer's template. A ends at a random sentence
    boundary, or in the middle if there is none. With equal probability B is the continuation, or
    as much text from a random place of the lane, starting at a sentence. With `reuse_length` as
    many tokens precede A, and the lane's next segment starts right after them.

    The tokens before A form one part, and A to B with the template the other. The second part sees
    the whole first part. The first sees nothing of the second, as the next segment reads that
    again with a memory of the first. Each part has its own `draw_targets`, in random order. Tokens
    that are not targets come before all targets of their part; special tokens are placed among the
    targets.

    With `bidirectional` half of the rows are read backwards; with `reuse_length` always the same
    lanes.

    Args:
        corpus, tokenizer, batch_size, max_length, seed, shuffle: as in `StreamBatches`.
        objective: a `PermutationLM`.

    Raises:
        InputError: if the lengths do not fit together, or there are too few tokens.
    """

    def __init__(
        self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True, *, objective
    ):
        super().__init__(corpus, tokenizer, batch_size, max_length, seed=seed, shuffle=shuffle)
        self.objective = objective
        self.template = SpecialTokenTemplate.from_tokenizer(tokenizer)
        self.first = objective.reuse_length or 0
        self.second = max_length - self.first - self.template.pair_size  # of A and B
        self._check_lengths()
        self.reach = self.first + self.second
        if not objective.memory:
            self.check_tokens(self.reach, "a segment")
            self.rows = self.tokens // self.reach
            return
        halves = 2 if objective.bidirectional else 1
        if batch_size % halves:
            raise InputError(
                f"batch_size={batch_size} must be even, as half of the lanes read backwards; or "
                "give bidirectional=False."
            )
        lanes = batch_size // halves
        self.check_tokens(lanes * self.reach, f"{lanes} lanes of max_length={max_length}")
        self.lane_size = self.tokens // lanes
        self.rows = batch_size * ((self.lane_size - self.reach) // self.first + 1)

    def _check_lengths(self):
        objective = self.objective
        if self.second < 2:
            raise InputError(
                f"max_length={self.max_length} and reuse_length={objective.reuse_length} leave "
                f"{max(self.second, 0)} tokens for two texts beside {self.template.pair_size} "
                "special ones; give a reuse_length of about half of max_length."
            )
        shortest = min(self.first or self.second, self.second)
        for name in ("predict_one_in", "max_span"):
            value = getattr(objective, name)
            if value > shortest:
                raise InputError(
                    f"{name}={value} is more than the {shortest} tokens of a part of a segment "
                    f"of max_length={self.max_length}; give at most {shortest}."
                )

    @property
    def predictions(self):
        """P, the number of predicted tokens of a segment."""
        k = self.objective.predict_one_in
        return self.first // k + self.second // k

    def settings(self):
        """Return the settings beyond those of all streams, for the fingerprint."""
        return [self.objective, self.template]

    def epoch(self, epoch=0, skip=0):
        """Yield the batches of an epoch, without the first `skip`."""
        stream, order = self.stream(epoch), self.window_order(epoch)
        for number in range(skip, len(self)):
            rng = np.random.default_rng([self.seed, epoch, number])
            if self.objective.memory:
                lanes, begin = self._lanes(stream), number * self.first
                segments = [self._segment(lane, begin, rng) for lane in lanes]
            else:
                windows = order[number * self.batch_size : (number + 1) * self.batch_size]
                segments = self._windows(stream, windows, rng)
            inputs, labels = _stacked(segments)
            if self.objective.memory:
                inputs |= lane_inputs(len(labels), number > 0)
            yield inputs, labels

    def _lanes(self, stream):
        """Return the lanes of an epoch, first those read forwards, then backwards."""
        directions = (False, True) if self.objective.bidirectional else (False,)
        starts = range(0, self.batch_size // len(directions) * self.lane_size, self.lane_size)
        return [Lane(stream, start, self.lane_size, d) for d in directions for start in starts]

    def _windows(self, stream, windows, rng):
        """Return the segments of some windows of a stream, the second half read backwards."""
        segments = []
        for row, window in enumerate(windows):
            backward = self.objective.bidirectional and row >= len(windows) / 2
            begin = int(window) * self.reach
            begin = len(stream) - begin - self.reach if backward else begin
            lane = Lane(stream, 0, len(stream), backward)
            segments.append(self._segment(lane, begin, rng))
        return segments

    def _segment(self, lane, begin, rng):
        """Return the arrays of a lane's segment that starts at `begin`."""
        middle, end = begin + self.first, begin + self.reach
        borders = lane.borders(middle, end)
        cut = int(rng.choice(borders)) if len(borders) else middle + self.second // 2
        other = self._elsewhere(lane, begin, end, end - cut, rng)
        b = lane.read(cut, end) if other is None else other
        pair, segments = self.template.around(lane.read(middle, cut), b)
        before = lane.read(begin, middle)
        ids = np.concatenate([before, pair])
        chosen, order = self._draw(self._special(cut - middle), rng)
        return {
            "token_ids": ids,
            "segment_ids": np.concatenate([np.zeros(self.first, "int32"), segments]),
            "permutation_order": order,
            TARGETS: chosen,
        }, ids[chosen]

    def _special(self, size):
        """Return which tokens of the second part are special, (L - first,) bool.

        `size` is the number of tokens of A.
        """
        before, between, after = (np.ones(len(part), bool) for part in self.template.pair)
        a, b = np.zeros(size, bool), np.zeros(self.second - size, bool)
        return np.concatenate([before, a, between, b, after])

    def _draw(self, special, rng):
        """Draw the targets (P,) of a segment, and its factorisation order (L,)."""
        parts = [np.zeros(self.first, bool)] * bool(self.first) + [special]
        k, longest = self.objective.predict_one_in, self.objective.max_span
        targets, ranks = [], []
        for part in parts:
            text, start = np.flatnonzero(~part), sum(map(len, ranks))
            chosen = np.sort(text[draw_targets(len(text), len(text) // k, k, longest, rng)])
            targets.append(start + chosen)
            # Ranks are above those of the part before.
            lowest = 1 + max((int(r.max()) for r in ranks), default=-1)
            ranks.append(lowest + draw_order(chosen, part, rng))
        return np.concatenate(targets), np.concatenate(ranks)

    def _elsewhere(self, lane, begin, end, size, rng):
        """Return `size` tokens from a random sentence start of a lane, or None.

        None has a probability of one half, and is also returned if the tokens overlap the segment.
        """
        place = int(rng.integers(lane.size - size + 1))
        if rng.random() < 0.5:
            return None
        place = lane.sentence_start(place)
        # Text of the segment itself would reveal its targets.
        return None if begin - size < place < end else lane.read(place, place + size)

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch."""
        ids = tf.TensorSpec((None, self.max_length), "int32")
        targets = tf.TensorSpec((None, self.predictions), "int32")
        names = ("token_ids", "segment_ids", "padding_mask", "permutation_order")
        more = lane_signature() if self.objective.memory else {}
        return dict.fromkeys(names, ids) | {TARGETS: targets} | more, targets


def draw_context_spans(length, predict_one_in, max_span, rng):
    """Draw spans of a text, each in a context of K times its length.

    Yang et al. 2019, section 2.3 and appendix A.5: first a length from 1 to `max_span`, then a
    uniform place in its context. Contexts are contiguous. Lengths n have probabilities
    proportional to 1 / n, as in the release (the paper does not say).

    Args:
        length: the number of tokens of the text.
        predict_one_in: K.
        max_span: the maximum length of a span.
        rng: a `numpy.random.Generator`.

    Returns:
        The starts of the contexts, the starts of the spans, and the lengths of the spans, (spans,)
        integers each. The last context may reach beyond the text.
    """
    sizes = np.arange(1, max_span + 1)
    share = 1 / sizes / (1 / sizes).sum()
    spans = rng.choice(sizes, length // predict_one_in + 1, p=share)
    contexts = np.cumsum(predict_one_in * spans) - predict_one_in * spans
    spans, contexts = spans[contexts < length], contexts[contexts < length]
    return contexts, contexts + rng.integers((predict_one_in - 1) * spans + 1), spans


def draw_targets(length, count, predict_one_in, max_span, rng):
    """Draw exactly `count` positions of a text to predict, most of them in spans.

    Spans are those of `draw_context_spans`. If they exceed `count` the last one is shortened; if
    they fall short further positions are drawn, as in the release. Unlike in the release, contexts
    start at a random place and wrap around the text, so all positions are equally likely
    targets.

    Returns:
        (count,) integers.
    """
    _, starts, spans = draw_context_spans(length, predict_one_in, max_span, rng)
    ends = np.cumsum(spans)
    targets = np.arange(ends[-1]) + np.repeat(starts - ends + spans, spans)
    targets = targets[targets < length][:count]
    rest = np.setdiff1d(np.arange(length), targets)
    targets = np.concatenate([targets, rng.choice(rest, count - len(targets), replace=False)])
    return (targets + rng.integers(length)) % length


def draw_order(targets, special, rng):
    """Draw the ranks of a part's positions in the factorisation order, (L,) int32.

    As in the release: ordinary tokens that are not targets come first with the same rank, so that
    they see each other and all others see them. Targets and special tokens follow in random order,
    each seeing those before it.

    Args:
        targets: (P,) integers.
        special: (L,) bool.
        rng: a `numpy.random.Generator`.
    """
    late = special.copy()
    late[targets] = True
    return np.where(late, 1 + rng.permutation(len(late)), 0).astype("int32")


def _stacked(segments):
    """Stack segments into the inputs and labels of a batch."""
    rows, labels = zip(*segments, strict=True)
    inputs = {key: np.stack([row[key] for row in rows]).astype("int32") for key in rows[0]}
    inputs |= as_inputs(inputs["token_ids"], inputs["segment_ids"])
    return inputs, np.stack(labels).astype("int32")
