"""Permutation language modelling.

Yang et al. 2019, 'XLNet', section 2.2 (orders), 2.3 (two streams, partial prediction), 2.4
(memory) and 2.5 (two segments); the contents of a batch follow the release (data_utils.py).
"""

import dataclasses
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from tfnlp.configs import family_name
from tfnlp.models import config_of
from tfnlp.objectives.lane_memory import check_memory, lane_inputs, lane_signature, with_memory
from tfnlp.objectives.special_token_template import Frame
from tfnlp.objectives.token_stream import Lane, StreamBatches, as_inputs
from tfnlp.text.batches import IGNORED
from tfnlp.utils.errors import InputError
from tfnlp.weighted_losses import correct, cross_entropy, log_likelihood

# The input with the predicted positions, (B, P).
TARGETS = "target_positions"


@dataclasses.dataclass(frozen=True)
class PermutationLM:
    """Permutation LM objective: predict spans of tokens in a random factorisation order.

    Args:
        reuse_length: the number of tokens by which a lane advances from segment to segment, which
            the memory keeps. The model must come from `build_model(memory=True)` and have the same
            `reuse_length`. The release uses half of `max_length`. None for no memory: segments are
            independent examples in random order.
        predict_one_in: K; one in K tokens is predicted.
        max_span: the maximum length of a span in tokens.
        bidirectional: whether half of a batch is read backwards.

    Raises:
        InputError: if a number is below 1.
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
        """True if the model has a memory."""
        return self.reuse_length is not None

    def check(self, config, tokenizer):
        """Raise an InputError if the family, its memory or the template does not fit.

        The family must have two streams of attention.
        """
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
        """Return the model to fit, which shares the weights of `model`.

        Args:
            model: a `TextModel` with the head "permutation_lm".
            batch_size: with memory, the number of lanes over all devices.

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
        """Build the `PermutationBatches` of a corpus."""
        return PermutationBatches(
            corpus, tokenizer, batch_size, max_length, seed, shuffle, objective=self
        )

    def losses(self, labels, outputs, sample_weight=None):
        """Return the mean cross-entropy of the targets (B, P)."""
        return {self.loss_name: cross_entropy(labels, outputs["logits"], sample_weight)}

    def scores(self, labels, outputs):
        """Return the log-likelihood of the targets, and the accuracy."""
        real = ops.cast(ops.not_equal(labels, IGNORED), "float32")
        return {
            "log_likelihood": log_likelihood(labels, outputs["logits"], real),
            "accuracy": correct(labels, outputs["logits"], real),
        }


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
        """P, the number of predicted tokens of a segment."""
        k = self.objective.predict_one_in
        return self.first // k + self.second // k

    def settings(self):
        """Return the settings beyond those of all streams, for the fingerprint."""
        return [self.objective, self.frame]

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
        """Return which tokens of the second part are special, (L - first,) bool.

        `size` is the number of tokens of A.
        """
        before, between, after = (np.ones(len(part), bool) for part in self.frame.pair)
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
        import tensorflow as tf

        ids = tf.TensorSpec((None, self.max_length), "int32")
        targets = tf.TensorSpec((None, self.predictions), "int32")
        names = ("token_ids", "segment_ids", "padding_mask", "permutation_order")
        more = lane_signature() if self.objective.memory else {}
        return dict.fromkeys(names, ids) | {TARGETS: targets} | more, targets


class OneHotPositions(keras.layers.Layer):
    """One-hot encoding (B, P, L) of positions (B, P); negative positions are zero rows."""

    def call(self, positions, token_ids):
        return ops.one_hot(positions, ops.shape(token_ids)[1], dtype="int32")

    def compute_output_spec(self, positions, token_ids):
        return keras.KerasTensor((*positions.shape, token_ids.shape[1]), dtype="int32")


def draw_spans(length, predict_one_in, max_span, rng):
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

    Spans are those of `draw_spans`. If they exceed `count` the last one is cut; if they fall short
    further positions are drawn, as in the release. Unlike in the release, contexts start at a
    random place and wrap around the text, so all positions are equally likely targets.

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
    whole = as_inputs(inputs["token_ids"], inputs["segment_ids"])
    return inputs | whole, np.stack(labels).astype("int32")
