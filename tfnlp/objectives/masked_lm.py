"""Masked language modelling: tokens are hidden, and predicted from what is around them.

Devlin et al. 2019, 'BERT', section 3.1, task 1, with the tokens drawn anew in each epoch as in
Liu et al. 2019, 'RoBERTa', section 4.1.
"""

import dataclasses
import hashlib

import keras
import numpy as np
from keras import ops

from tfnlp.errors import InputError
from tfnlp.losses import cross_entropy
from tfnlp.text.batches import IGNORED, LengthBatches

POSITIONS = "masked_positions"


class MaskedLM:
    """The token that stood at each hidden position; a task as `tfnlp.tasks` describes them."""

    head = "masked_lm"
    num_classes = label_names = settings = None
    outputs = ("logits",)
    loss_name = "masked_lm_loss"

    def loss(self, labels, outputs, sample_weight=None):
        """The mean cross-entropy of labels (B, P) and logits (B, P, V); -100 counts nothing."""
        return cross_entropy(labels, outputs["logits"], sample_weight)


@dataclasses.dataclass(frozen=True, eq=False)
class Masking:
    """Which tokens are hidden, and what stands in their place.

    Args:
        mask_token_id: what hides a token.
        ordinary_ids: (ids,), the tokens that may be hidden, and that may stand in place of
            others; special tokens are none of them.
        share: of each text's ordinary tokens that are to be predicted; one at least.
        masked: the share of those that the mask stands for.
        replaced: the share of those that another token stands for, drawn at random; the rest
            stays as it is.
        begins_word: (V,) bool, the tokens that begin a word, to hide whole words: as many as it
            takes for that share of tokens. None to hide tokens.

    Raises:
        InputError: for shares that are none.
    """

    mask_token_id: int
    ordinary_ids: np.ndarray
    share: float = 0.15
    masked: float = 0.8
    replaced: float = 0.1
    begins_word: np.ndarray | None = None

    def __post_init__(self):
        shares = (self.share, self.masked, self.replaced, self.masked + self.replaced)
        if self.share == 0 or not all(0 <= share <= 1 for share in shares):
            raise InputError(
                f"share={self.share}, masked={self.masked} and replaced={self.replaced} must be "
                "shares from 0 to 1, the first above 0, and the last two 1 at most together."
            )
        ordinary = np.zeros(np.max(self.ordinary_ids) + 2, bool)  # the last for all ids beyond
        ordinary[self.ordinary_ids] = True
        object.__setattr__(self, "_ordinary", ordinary)

    @classmethod
    def of(cls, tokenizer, share=0.15, whole_words=False):
        """What a tokenizer's special tokens ask for.

        Args:
            tokenizer: see `tfnlp.text`.
            share: of the tokens to predict.
            whole_words: whether all tokens of a word are hidden together.

        Raises:
            InputError: for a tokenizer without a mask token.
        """
        if tokenizer.mask_token_id is None:
            raise InputError(
                "The tokenizer has no [MASK] (nor <mask>), so that no token can be hidden; give "
                "the tokenizer of a masked language model."
            )
        ids = np.arange(tokenizer.vocabulary_size)
        ordinary = np.setdiff1d(ids, tokenizer.special_token_ids)
        begins = tokenizer.begins_word(ids) if whole_words else None
        return cls(tokenizer.mask_token_id, ordinary, share, begins_word=begins)

    def mask(self, token_ids, padding_mask, rng):
        """Hides tokens of a batch.

        Args:
            token_ids: (B, L) int32.
            padding_mask: (B, L), 1 at real tokens.
            rng: a `numpy.random.Generator`.

        Returns:
            The ids to read (B, L), the positions to predict (B, P) in ascending order and 0
            where a text has fewer, and the ids that stood there (B, P), -100 likewise; int32.
        """
        may = self._ordinary[np.minimum(token_ids, len(self._ordinary) - 1)] & (padding_mask > 0)
        counts = may.sum(1)
        counts = np.minimum(counts, np.maximum(1, np.round(self.share * counts)).astype(int))
        draws = rng.random(token_ids.shape)
        if self.begins_word is not None:
            draws = np.take_along_axis(draws, self._word_starts(token_ids, may), 1)
        draws[~may] = 2.0
        # The smallest draws are chosen; those of a word are one.
        limits = np.sort(draws, 1)[np.arange(len(draws)), np.maximum(counts, 1) - 1]
        chosen = may & (draws <= limits[:, None])
        kinds = rng.random(token_ids.shape)
        others = rng.choice(self.ordinary_ids, token_ids.shape)
        read = np.where(kinds < self.masked, self.mask_token_id, token_ids)
        replaced = (kinds >= self.masked) & (kinds < self.masked + self.replaced)
        read = np.where(chosen, np.where(replaced, others, read), token_ids)
        places = np.argsort(~chosen, axis=1, kind="stable")[:, : max(1, chosen.sum(1).max())]
        real = np.take_along_axis(chosen, places, 1)
        labels = np.where(real, np.take_along_axis(token_ids, places, 1), IGNORED)
        return tuple(x.astype("int32") for x in (read, np.where(real, places, 0), labels))

    def _word_starts(self, token_ids, may):
        """Where the word of each token begins, (B, L)."""
        begins = self.begins_word[token_ids] | ~may
        begins[:, 1:] |= ~may[:, :-1]
        begins[:, 0] = True
        return np.maximum.accumulate(np.where(begins, np.arange(begins.shape[1]), 0), 1)


class MaskedBatches(LengthBatches):
    """Texts with hidden tokens, to be predicted: `masked_positions` (B, P), and labels (B, P).

    What is hidden depends on the seed, the epoch and the batch's number alone, as the order
    does, so that a killed run goes on with the same batches.

    Args:
        encodings, batch_size, options: as `LengthBatches` takes them.
        masking: a `Masking`.
        predicted: whether there are positions and labels; else the inputs alone.
    """

    def __init__(self, encodings, batch_size, masking, predicted=True, **options):
        super().__init__(encodings, batch_size, **options)
        self.masking = masking
        self.predicted = predicted

    def epoch(self, epoch=0, skip=0):
        for number, indices in enumerate(self.order(epoch)):
            if number < skip:
                continue
            (inputs,) = self.batch(indices)
            rng = np.random.default_rng([self.seed, epoch, number])
            ids, positions, labels = self.masking.mask(
                inputs["token_ids"], inputs["padding_mask"], rng
            )
            inputs = inputs | {"token_ids": ids}
            yield (inputs | {POSITIONS: positions}, labels) if self.predicted else (inputs,)

    def fingerprint(self):
        masking = self.masking
        settings = [masking.mask_token_id, masking.share, masking.masked, masking.replaced]
        digest = hashlib.sha256(f"{super().fingerprint()} {settings}".encode())
        for table in (masking.ordinary_ids, masking.begins_word):
            digest.update(b"" if table is None else np.ascontiguousarray(table))
        return digest.hexdigest()

    def signature(self):
        import tensorflow as tf

        (inputs,) = super().signature()
        if not self.predicted:
            return (inputs,)
        ids = tf.TensorSpec((None, None), "int32")
        return inputs | {POSITIONS: ids}, ids


class TakePositions(keras.layers.Layer):
    """States (B, P, D) at positions (B, P) of states (B, L, D)."""

    def call(self, states, positions):
        batch, length = ops.shape(states)[:2]
        rows = ops.arange(batch, dtype=positions.dtype)[:, None] * length + positions
        return ops.take(ops.reshape(states, (-1, states.shape[-1])), rows, axis=0)

    def compute_output_shape(self, states_shape, positions_shape):
        return (*positions_shape, states_shape[-1])


def predict_at_positions(model):
    """A masked language model whose logits are computed where tokens are hidden, not everywhere.

    Args:
        model: a `TextModel` with the head "masked_lm".

    Returns:
        A functional `keras.Model` of the same weights, with one more input, `masked_positions`
        (B, P), and `logits` (B, P, V); its other outputs are the model's.

    Raises:
        InputError: for a model with another head.
    """
    if model.head != "masked_lm":
        raise InputError(
            f"Model {model.name} has the head {model.head!r}, which predicts no hidden tokens; "
            "give a masked language model."
        )
    states = model.get_layer("lm_transform").input
    head = keras.Model(states, model.output["logits"], name="lm_head")
    positions = keras.Input((None,), dtype="int32", name=POSITIONS)
    logits = head(TakePositions(name="hidden_states_at_positions")(states, positions))
    return keras.Model(
        model.input | {POSITIONS: positions}, model.output | {"logits": logits}, name=model.name
    )
