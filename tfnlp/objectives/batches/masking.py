"""Random masking of tokens, words and spans.

Devlin et al. 2019, 'BERT', section 3.1, task 1; spans as in Lan et al. 2020, 'ALBERT', section
3.1.
"""

import dataclasses
import hashlib

import numpy as np
import tensorflow as tf

from tfnlp.text.batching.batches import IGNORED, LengthBatches
from tfnlp.text.tokenizers.word_starts import WordStarts
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import check_at_least

POSITIONS = "masked_positions"
# With fixed lengths, the number of positions is a multiple of this.
POSITIONS_STEP = 16


@dataclasses.dataclass(frozen=True, eq=False)
class Masking:
    """Selection of masked tokens, and their replacements.

    Args:
        mask_token_id: the id of the mask token.
        ordinary_ids: (ids,), the tokens that may be masked or be random replacements; no special
            tokens.
        share: the share of each text's ordinary tokens or words to predict; at least one.
        masked: the share of those that become the mask token.
        replaced: the share of those that become a random token; the rest stays unchanged.
        word_starts: `WordStarts` of `tfnlp.text.tokenizers.word_starts`, for whole-word masking;
            None to mask tokens.
        longest_span: the maximum number of words, or tokens, of a span (`draw_masked_spans`).

    Raises:
        InputError: if a share is out of range, or `longest_span` is below 1.
    """

    mask_token_id: int
    ordinary_ids: np.ndarray
    share: float = 0.15
    masked: float = 0.8
    replaced: float = 0.1
    word_starts: WordStarts | None = None
    longest_span: int = 1

    def __post_init__(self):
        shares = (self.share, self.masked, self.replaced, self.masked + self.replaced)
        if self.share == 0 or not all(0 <= share <= 1 for share in shares):
            raise InputError(
                f"share={self.share}, masked={self.masked} and replaced={self.replaced} must be "
                "shares from 0 to 1, the first above 0, and the last two 1 at most together."
            )
        check_at_least(1, longest_span=self.longest_span)
        ordinary = np.zeros(np.max(self.ordinary_ids) + 2, bool)  # last entry: larger ids
        ordinary[self.ordinary_ids] = True
        object.__setattr__(self, "_ordinary", ordinary)

    @classmethod
    def from_tokenizer(cls, tokenizer, share=0.15, whole_words=False, **options):
        """Build the masking of a tokenizer, of whole words or tokens.

        `options` are `masked`, `replaced` and `longest_span`.

        Raises:
            InputError: if the tokenizer has no mask token.
        """
        if tokenizer.mask_token_id is None:
            raise InputError(
                "The tokenizer has no [MASK] (nor <mask>), so that no token can be masked; give "
                "that of a masked language model."
            )
        ids = np.arange(tokenizer.vocabulary_size)
        ordinary = np.setdiff1d(ids, tokenizer.special_token_ids)
        starts = tokenizer.word_starts() if whole_words else None
        return cls(tokenizer.mask_token_id, ordinary, share, word_starts=starts, **options)

    def mask(self, token_ids, padding_mask, rng):
        """Mask tokens of a batch.

        Args:
            token_ids: (B, L) int32.
            padding_mask: (B, L), 1 at real tokens.
            rng: a `numpy.random.Generator`.

        Returns:
            Three int32 arrays. The masked ids (B, L); the positions to predict (B, P), in
            ascending order, 0 where a text has fewer; and the original ids there (B, P), -100
            where a text has fewer.
        """
        may = self._ordinary[np.minimum(token_ids, len(self._ordinary) - 1)] & (padding_mask > 0)
        if self.word_starts is None and self.longest_span == 1:
            chosen = self._some(may, rng)
        else:
            words, room = self._words(token_ids, may)
            if self.longest_span == 1:
                masked = self._some(room > 0, rng)
            else:
                masked = draw_masked_spans(room, self.share, self.longest_span, rng) > 0
            chosen = may & np.take_along_axis(masked, words, 1)
        kinds = rng.random(token_ids.shape)
        random_ids = rng.choice(self.ordinary_ids, token_ids.shape)
        masked_ids = np.where(kinds < self.masked, self.mask_token_id, token_ids)
        replaced = (kinds >= self.masked) & (kinds < self.masked + self.replaced)
        masked_ids = np.where(chosen, np.where(replaced, random_ids, masked_ids), token_ids)
        places = np.argsort(~chosen, axis=1, kind="stable")[:, : max(1, chosen.sum(1).max())]
        real = np.take_along_axis(chosen, places, 1)
        labels = np.where(real, np.take_along_axis(token_ids, places, 1), IGNORED)
        return tuple(x.astype("int32") for x in (masked_ids, np.where(real, places, 0), labels))

    def _some(self, may, rng):
        """Choose the share of the candidates of each row uniformly: (B, n) bool."""
        counts = np.maximum(1, np.round(self.share * may.sum(1)).astype(int))
        draws = np.where(may, rng.random(may.shape), 2.0)
        limits = np.sort(draws, 1)[np.arange(len(draws)), counts - 1]
        return may & (draws <= limits[:, None])

    def _words(self, token_ids, may):
        """Return the words of a batch, or its tokens without `word_starts`.

        Returns:
            The index of each token's word in its text, (B, L), 0 for tokens outside words; and the
            number of adjacent words from each word on, (B, W), 0 where there is no word.
        """
        before = np.pad(may, [(0, 0), (1, 0)])[:, :-1]
        starts = may
        if self.word_starts is not None:
            starts = may & (~before | self.word_starts(token_ids))
        words = np.where(may, np.maximum(np.cumsum(starts, 1), 1) - 1, 0)
        counts = starts.sum(1)
        places = np.arange(max(1, counts.max()))
        # The run of adjacent words ends after the last word, or before a special token.
        apart = np.full((len(may), len(places)), len(places))
        rows, at = np.nonzero(starts & ~before)
        apart[rows, words[rows, at]] = words[rows, at]
        later = np.pad(apart[:, 1:], [(0, 0), (0, 1)], constant_values=len(places))
        end = np.minimum.accumulate(later[:, ::-1], 1)[:, ::-1]
        end = np.minimum(end, counts[:, None])
        return words, np.where(places < counts[:, None], end - places, 0)


class MaskedBatches(LengthBatches):
    """Batches of masked texts, with `masked_positions` (B, P) and labels (B, P).

    The masking depends on the seed, the epoch and the batch number alone, like the order, so a
    resumed run gets the same batches.

    Args:
        encodings, batch_size, options: as in `LengthBatches`.
        masking: a `Masking`.
        predicted: whether batches have positions and labels; else they hold the inputs alone.
    """

    def __init__(self, encodings, batch_size, masking, predicted=True, **options):
        super().__init__(encodings, batch_size, **options)
        self.masking = masking
        self.predicted = predicted

    def make(self, plan, epoch, number):
        rng = np.random.default_rng([self.seed, epoch, number])
        inputs, labels = self.masked_batch(plan[number], rng)
        return (inputs, labels) if self.predicted else (inputs,)

    def masked_batch(self, indices, rng):
        """Return the masked inputs of some encodings, and the labels."""
        (inputs,) = self.batch(indices)
        return self.mask(inputs, rng)

    def mask(self, inputs, rng):
        """Return the masked inputs of a batch, including the positions, and the labels."""
        ids, positions, labels = self.masking.mask(
            inputs["token_ids"], inputs["padding_mask"], rng
        )
        if self.fixed_length is not None:  # XLA compiles each shape anew, so keep them few
            axes = (0, 0), (0, -positions.shape[1] % POSITIONS_STEP)
            positions = np.pad(positions, axes)
            labels = np.pad(labels, axes, constant_values=IGNORED)
        inputs = inputs | {"token_ids": ids}
        return inputs | ({POSITIONS: positions} if self.predicted else {}), labels

    def fingerprint(self):
        masking = self.masking
        settings = [masking.mask_token_id, masking.share, masking.masked, masking.replaced]
        digest = hashlib.sha256(
            f"{super().fingerprint()} {settings} {masking.longest_span}".encode()
        )
        words = masking.word_starts
        for table in (masking.ordinary_ids, *((words.bytes, words.ends) if words else ())):
            digest.update(np.ascontiguousarray(table))
        return digest.hexdigest()

    def signature(self):
        (inputs,) = super().signature()
        ids = tf.TensorSpec((None, None), "int32")
        return (inputs | {POSITIONS: ids}, ids) if self.predicted else (inputs,)


def span_chances(longest):
    """Return the probabilities of spans of n = 1, 2, ... words: 1/n over the sum of all 1/k."""
    chances = 1 / np.arange(1, longest + 1)
    return chances / chances.sum()


def draw_masked_spans(room, share, longest, rng):
    """Draw spans until they cover a share of each text's words, at least one span.

    The length n of a span is drawn first, with probability p(n) = `span_chances` (Lan et al. 2020,
    section 3.1), then its place among those where it fits. The decision to add a span precedes its
    length. So lengths follow p(n) up to the last span, and the expected number of covered words is
    the share. (ALBERT's own code shortens the last spans to the rest, which yields more short ones
    than p(n).)

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
        # A text with r words left gets a span with probability q(r). The expected number of
        # covered words, V(r) = q(r) (E[n] + E[V(r - n)]), equals r if V is 0 for r <= 0.
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
