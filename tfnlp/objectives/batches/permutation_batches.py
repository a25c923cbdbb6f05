"""Batches of permutation language modelling: segments, targets and factorisation orders.

Yang et al. 2019, 'XLNet', sections 2.2 to 2.5; the contents follow the release (data_utils.py).
"""

import numpy as np

from tfnlp.objectives.batches.special_token_template import SpecialTokenTemplate
from tfnlp.objectives.batches.token_stream import Lane, StreamBatches, as_inputs
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
        corpus, tokenizer, batch_size, max_length, options: as in `StreamBatches`.
        objective: a `PermutationLM`.

    Raises:
        InputError: if the lengths do not fit together, or there are too few tokens.
    """

    def __init__(self, corpus, tokenizer, batch_size, max_length, *, objective, **options):
        options["memory"] = objective.memory
        super().__init__(corpus, tokenizer, batch_size, max_length, **options)
        self.objective = objective
        self.template = SpecialTokenTemplate.from_tokenizer(tokenizer)
        self.settings = [objective, self.template]
        self.first = objective.reuse_length or 0
        # The tokens of A and B.
        self.second = self.template.room(max_length, texts=2, taken=self.first)
        self.reach = self.first + self.second
        self._check_targets()
        if not self.memory:
            self.check_tokens(self.reach, "a segment")
            self.rows = self.tokens // self.reach
            return
        self.lanes, odd = divmod(batch_size, 2 if objective.bidirectional else 1)
        if odd:
            raise InputError(
                f"batch_size={batch_size} must be even, as half of the lanes read backwards; or "
                "give bidirectional=False."
            )
        lanes = f"{self.lanes} lanes of max_length={max_length}"
        self.check_tokens(self.lanes * self.reach, lanes)
        self.lane_size = self.tokens // self.lanes
        self.rows = batch_size * ((self.lane_size - self.reach) // self.first + 1)

    def _check_targets(self):
        shortest = min(self.first or self.second, self.second)
        for name in ("predict_one_in", "max_span"):
            if getattr(self.objective, name) > shortest:
                raise InputError(
                    f"{name}={getattr(self.objective, name)} is more than the {shortest} tokens "
                    f"of a part of a segment of max_length={self.max_length}; give a lower one."
                )

    @property
    def predictions(self):
        """P, the number of predicted tokens of a segment."""
        k = self.objective.predict_one_in
        return self.first // k + self.second // k

    def batch(self, stream, examples, rng):
        segments = []
        for row, example in enumerate(map(int, examples)):
            if self.memory:
                number, lane = divmod(example, self.batch_size)
                backward, lane = divmod(lane, self.lanes)  # those read forwards come first
                start, size, begin = lane * self.lane_size, self.lane_size, number * self.first
            else:
                backward = self.objective.bidirectional and row >= len(examples) / 2
                start, size, begin = 0, len(stream), example * self.reach
                if backward:
                    begin = size - begin - self.reach
            segments.append(self._segment(Lane(stream, start, size, bool(backward)), begin, rng))
        columns = (np.stack(x).astype("int32") for x in zip(*segments, strict=True))
        ids, segment_ids, order, targets = columns
        inputs = as_inputs(ids, segment_ids) | {"permutation_order": order, TARGETS: targets}
        return inputs, np.take_along_axis(ids, targets, 1)

    def _segment(self, lane, begin, rng):
        """Return the ids, segments, order and targets of the segment of a lane from `begin`."""
        middle, end = begin + self.first, begin + self.reach
        borders = lane.borders(middle, end)
        cut = int(rng.choice(borders)) if len(borders) else middle + self.second // 2
        other = self._elsewhere(lane, begin, end, end - cut, rng)
        a, b = lane.read(middle, cut), lane.read(cut, end) if other is None else other
        pair, segments = self.template.around(a, b)
        ordinary, _ = self.template.around(0 * a - 1, 0 * b - 1)  # -1 but at special tokens
        targets, order = self._draw(ordinary >= 0, rng)
        ids = np.concatenate([lane.read(begin, middle), pair])
        return ids, np.concatenate([np.zeros(self.first), segments]), order, targets

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


def draw_context_spans(length, predict_one_in, max_span, rng):
    """Draw spans of a text, each in a context of K times its length.

    Yang et al. 2019, section 2.3 and appendix A.5: first a length from 1 to `max_span`, then a
    uniform place in its context. Contexts are contiguous. Lengths n have probabilities
    proportional to 1 / n, as in the release (the paper does not say).

    Args:
        length: the number of tokens of the text.
        predict_one_in: K.
        max_span, rng: the maximum length of a span, and a `numpy.random.Generator`.

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
    they see each other and all others see them. Targets (P,) and tokens where `special` (L,) is
    true follow in random order, each seeing those before it.
    """
    late = special.copy()
    late[targets] = True
    return np.where(late, 1 + rng.permutation(len(late)), 0).astype("int32")
