"""Permutation language modelling: tokens are predicted in a random order of seeing them.

Yang et al. 2019, 'XLNet', section 2.2 (orders), 2.3 (two streams, partial prediction), 2.4
(memory) and 2.5 (two segments); what a batch holds follows the release (data_utils.py).
"""

import dataclasses
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from tfnlp.errors import InputError
from tfnlp.losses import correct, cross_entropy, log_likelihood
from tfnlp.models import config_of
from tfnlp.models.build import family_name
from tfnlp.objectives.frame import Frame
from tfnlp.objectives.memory import check_memory, lane_inputs, lane_signature, with_memory
from tfnlp.objectives.stream import Lane, StreamBatches, as_inputs
from tfnlp.text.batches import IGNORED

# The input of the positions that are predicted, (B, P).
TARGETS = "target_positions"


@dataclasses.dataclass(frozen=True)
class PermutationLM:
    """The tokens of some spans, in a random order of factorisation.

    Args:
        reuse_length: the tokens by which a lane of the batch moves on from one segment to the
            next, which keeps a memory of them; the model is one of `build_model(memory=True)`
            then, and its `reuse_length` the same. Half of `max_length` in the release. None for no
            memory: examples are segments of their own, in random order.
        predict_one_in: K; one in K tokens is predicted.
        max_span: the longest span, in tokens.
        bidirectional: whether half of a batch reads backwards.

    Raises:
        InputError: for numbers below 1.
    """

    reuse_length: int | None = None
    predict_one_in: int = 6
    max_span: int = 5
    bidirectional: bool = True

    head: ClassVar[str] = "permutation_lm"
    loss_name: ClassVar[str] = "permutation_lm_loss"
    loss_weights: ClassVar[dict] = {"permutation_lm_loss": 1.0}

    def __post_init__(self):
        for name in ("reuse_length", "predict_one_in", "max_span"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name}={value} must be at least 1.")

    @property
    def memory(self):
        """Whether the model has a memory."""
        return self.reuse_length is not None

    def check(self, config, tokenizer):
        """Raises an InputError for a family without two streams, a memory or a frame that fits."""
        if config.language_model != self.head:
            raise InputError(
                "Permutation language modelling does not fit the family "
                f"{family_name(config)!r}, which has one stream; give an XLNet."
            )
        Frame.of(tokenizer)
        if self.memory:
            check_memory(config, f"reuse_length={self.reuse_length}")
            if config.reuse_length != self.reuse_length:
                raise InputError(
                    f"reuse_length={self.reuse_length} is not the model's, which keeps "
                    f"{config.reuse_length} positions of a segment in its memory; give both one."
                )

    def trained(self, model, batch_size=None):
        """The model that is fitted, of the same weights.

        Args:
            model: a `TextModel` with the head "permutation_lm".
            batch_size: with memory, the lanes of a batch over all devices.

        Returns:
            A `keras.Model` from the inputs of the batches to `logits` (B, P, V).
        """
        if ("memory" in model.input) != self.memory:
            raise InputError(
                f"reuse_length={self.reuse_length} does not fit model {model.name}, which was "
                f"built with{'out' if self.memory else ''} memory; build it with "
                f"memory={self.memory}."
            )
        inputs = {k: v for k, v in model.input.items() if k != "target_mapping"}
        targets = keras.Input((None,), dtype="int32", name=TARGETS)
        mapping = OneHotPositions(name="mapping")(targets, inputs["token_ids"])
        outputs = model(inputs | {"target_mapping": mapping})
        names = ("logits", "memory") if self.memory else ("logits",)
        outputs = {name: outputs[name] for name in names}
        inner = keras.Model(inputs | {TARGETS: targets}, outputs, name=model.name)
        return with_memory(inner, config_of(model), batch_size) if self.memory else inner

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """The `PermutationBatches` of a corpus."""
        return PermutationBatches(
            corpus, tokenizer, batch_size, max_length, seed, shuffle, objective=self
        )

    def losses(self, labels, outputs, sample_weight=None):
        """The mean cross-entropy of the targets (B, P)."""
        return {self.loss_name: cross_entropy(labels, outputs["logits"], sample_weight)}

    def scores(self, labels, outputs):
        """The log-likelihood of the targets, and the accuracy."""
        real = ops.cast(ops.not_equal(labels, IGNORED), "float32")
        return {
            "log_likelihood": log_likelihood(labels, outputs["logits"], real),
            "accuracy": correct(labels, outputs["logits"], real),
        }


class PermutationBatches(StreamBatches):
    """Segments of a stream, the spans of them that are predicted, and their order.

    A segment is A and B in the tokenizer's frame of two texts. A ends where a sentence does, drawn
    among the ends there are, or in the middle where there is none; B is what follows or, as often,
    as much from a random place of the lane, from the start of a sentence on. With `reuse_length`
    so many tokens come before A, which are where the lane's next segment goes on.

    The tokens before A, and A to B with their frame, are a part each: the second part sees the
    whole first, the first nothing of the second, as the next segment reads it again with a memory
    of the first. Each part has `draw_targets` of its own, whose order is random; tokens that are
    no target are before all targets of their part, and special tokens of the frame among them.

    Half of the rows read backwards where `bidirectional`: with `reuse_length` the same lanes.

    Args:
        corpus, tokenizer, batch_size, max_length, seed, shuffle: as `StreamBatches` takes them.
        objective: a `PermutationLM`.

    Raises:
        InputError: for lengths that do not go together, and too few tokens.
    """

    def __init__(
        self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True, *, objective
    ):
        super().__init__(corpus, tokenizer, batch_size, max_length, seed, shuffle)
        self.objective = objective
        self.frame = Frame.of(tokenizer)
        self.first = objective.reuse_length or 0
        self.second = max_length - self.first - self.frame.pair_size  # of A and B
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
        given = self.objective
        if self.second < 2:
            raise InputError(
                f"max_length={self.max_length} and reuse_length={given.reuse_length} leave "
                f"{max(self.second, 0)} tokens for two texts beside {self.frame.pair_size} "
                "special ones; give a reuse_length of about half of max_length."
            )
        shortest = min(self.first or self.second, self.second)
        for name in ("predict_one_in", "max_span"):
            value = getattr(given, name)
            if value > shortest:
                raise InputError(
                    f"{name}={value} is more than the {shortest} tokens of a part of a segment "
                    f"of max_length={self.max_length}; give at most {shortest}."
                )

    @property
    def predictions(self):
        """P, the tokens that are predicted of a segment."""
        k = self.objective.predict_one_in
        return self.first // k + self.second // k

    def settings(self):
        """What decides the batches beside what all streams have."""
        return [self.objective, self.frame]

    def epoch(self, epoch=0, skip=0):
        """Yields the batches of an epoch, without the first `skip`."""
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
        """The lanes of an epoch: those that read forwards, then those that read backwards."""
        directions = (False, True) if self.objective.bidirectional else (False,)
        starts = range(0, self.batch_size // len(directions) * self.lane_size, self.lane_size)
        return [Lane(stream, start, self.lane_size, d) for d in directions for start in starts]

    def _windows(self, stream, windows, rng):
        """The segments of some windows of a stream, the second half of them read backwards."""
        segments = []
        for row, window in enumerate(windows):
            backward = self.objective.bidirectional and row >= len(windows) / 2
            begin = int(window) * self.reach
            begin = len(stream) - begin - self.reach if backward else begin
            lane = Lane(stream, 0, len(stream), backward)
            segments.append(self._segment(lane, begin, rng))
        return segments

    def _segment(self, lane, begin, rng):
        """The arrays of the segment of a lane that begins at a place."""
        middle, end = begin + self.first, begin + self.reach
        borders = lane.borders(middle, end)
        cut = int(rng.choice(borders)) if len(borders) else middle + self.second // 2
        other = self._elsewhere(lane, begin, end, end - cut, rng)
        b = lane.read(cut, end) if other is None else other
        pair, segments = self.frame.around(lane.read(middle, cut), b)
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
        """Which tokens of the second part are the frame's, A having `size`; (L - first,) bool."""
        before, between, after = (np.ones(len(part), bool) for part in self.frame.pair)
        a, b = np.zeros(size, bool), np.zeros(self.second - size, bool)
        return np.concatenate([before, a, between, b, after])

    def _draw(self, special, rng):
        """The targets (P,) of a segment, and its order (L,)."""
        parts = [np.zeros(self.first, bool)] * bool(self.first) + [special]
        k, longest = self.objective.predict_one_in, self.objective.max_span
        targets, ranks = [], []
        for part in parts:
            text, start = np.flatnonzero(~part), sum(map(len, ranks))
            chosen = np.sort(text[draw_targets(len(text), len(text) // k, k, longest, rng)])
            targets.append(start + chosen)
            # Above all ranks of the part before.
            lowest = 1 + max((int(r.max()) for r in ranks), default=-1)
            ranks.append(lowest + draw_order(chosen, part, rng))
        return np.concatenate(targets), np.concatenate(ranks)

    def _elsewhere(self, lane, begin, end, size, rng):
        """As often as not `size` tokens from a sentence's start elsewhere in a lane, else None."""
        place = int(rng.integers(lane.size - size + 1))
        if rng.random() < 0.5:
            return None
        place = lane.sentence_start(place)
        # Not what the segment has already: its targets could be read there.
        return None if begin - size < place < end else lane.read(place, place + size)

    def signature(self):
        """The `tf.TensorSpec`s of a batch."""
        import tensorflow as tf

        ids = tf.TensorSpec((None, self.max_length), "int32")
        targets = tf.TensorSpec((None, self.predictions), "int32")
        names = ("token_ids", "segment_ids", "padding_mask", "permutation_order")
        more = lane_signature() if self.objective.memory else {}
        return dict.fromkeys(names, ids) | {TARGETS: targets} | more, targets


class OneHotPositions(keras.layers.Layer):
    """Positions (B, P) as one-hot rows (B, P, L) of ids (B, L); a negative one is a row of 0."""

    def call(self, positions, token_ids):
        return ops.one_hot(positions, ops.shape(token_ids)[1], dtype="int32")

    def compute_output_spec(self, positions, token_ids):
        return keras.KerasTensor((*positions.shape, token_ids.shape[1]), dtype="int32")


def draw_spans(length, predict_one_in, max_span, rng):
    """Spans of a text, each in a context of K times its length.

    Yang et al. 2019, section 2.3 and appendix A.5: a length from 1 to `max_span`, then its place
    in its context, all alike probable; contexts lie end to end. Lengths n are drawn with
    probabilities as 1 / n, as in the release (the paper does not say).

    Args:
        length: the tokens of the text.
        predict_one_in: K.
        max_span: the longest span.
        rng: a `numpy.random.Generator`.

    Returns:
        Where each context begins, where each span does, and the spans' lengths, (spans,) integers;
        the last context may reach beyond the text.
    """
    sizes = np.arange(1, max_span + 1)
    share = 1 / sizes / (1 / sizes).sum()
    spans = rng.choice(sizes, length // predict_one_in + 1, p=share)
    contexts = np.cumsum(predict_one_in * spans) - predict_one_in * spans
    spans, contexts = spans[contexts < length], contexts[contexts < length]
    return contexts, contexts + rng.integers((predict_one_in - 1) * spans + 1), spans


def draw_targets(length, count, predict_one_in, max_span, rng):
    """Exactly `count` positions of a text to predict, most of them in spans.

    Spans as `draw_spans` has them, the last cut where they are more than `count`; where they are
    fewer further positions are drawn, as in the release. Not as there, contexts begin anywhere and
    go on from the text's end to its beginning: so each position is as often a target as any other.

    Returns:
        (count,) integers.
    """
    _, starts, spans = draw_spans(length, predict_one_in, max_span, rng)
    ends = np.cumsum(spans)
    found = np.arange(ends[-1]) + np.repeat(starts - ends + spans, spans)
    found = found[found < length][:count]
    rest = np.setdiff1d(np.arange(length), found)
    found = np.concatenate([found, rng.choice(rest, count - len(found), replace=False)])
    return (found + rng.integers(length)) % length


def draw_order(targets, special, rng):
    """Ranks of a part's positions in an order of factorisation, (L,) int32.

    As in the release: ordinary tokens that are no target come first, of one rank, so that they
    see each other and are seen by all; targets and special tokens follow in random order, each
    seeing those before it.

    Args:
        targets: (P,) integers.
        special: (L,) bool.
        rng: a `numpy.random.Generator`.
    """
    late = special.copy()
    late[targets] = True
    return np.where(late, 1 + rng.permutation(len(late)), 0).astype("int32")


def _stacked(segments):
    """Segments as the inputs and labels of a batch."""
    rows, labels = zip(*segments, strict=True)
    inputs = {key: np.stack([row[key] for row in rows]).astype("int32") for key in rows[0]}
    whole = as_inputs(inputs["token_ids"], inputs["segment_ids"])
    return inputs | whole, np.stack(labels).astype("int32")
