"""Bidirectional language modelling (Peters et al. 2018, 'ELMo', section 3.1)."""

import dataclasses
import hashlib
from typing import ClassVar

import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.functional.weighted_losses import token_cross_entropy
from tfnlp.objectives.batches.segments import Segments
from tfnlp.objectives.batches.special_token_template import SpecialTokenTemplate
from tfnlp.objectives.causal_lm import ADDED
from tfnlp.objectives.objective import Objective, token_scores
from tfnlp.text import LengthBatches, SpellingTokenizer, narrow, spell
from tfnlp.text.batching.batches import IGNORED
from tfnlp.text.tokenizers.spelling import UNKNOWN_WORD
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class BidirectionalLM(Objective):
    """Bidirectional LM objective: predict the next and the previous word at every position.

    The loss is the mean over words k of -log p(t_k | t_1, ..., t_{k-1}), by the forward states,
    and of -log p(t_k | t_{k+1}, ..., t_N), by the backward ones, each with weight 1/2. A text is
    as many sentences of a document as it has room for, between its special tokens, which are
    predicted too. Words that the model does not predict are [UNK] as labels, but are read by
    their characters.
    """

    head: ClassVar[str] = "bidirectional_lm"
    loss_name: ClassVar[str] = "bidirectional_lm_loss"

    @property
    def loss_weights(self):
        return {"forward_loss": 0.5, "backward_loss": 0.5}

    def check(self, config, tokenizer):
        """Raise an InputError for another family, or a tokenizer of other units than words."""
        super().check(config, tokenizer)
        if not isinstance(tokenizer, SpellingTokenizer):
            raise InputError(
                "A bidirectional LM reads whole words; give a tokenizer from train_tokenizer with "
                "kind=words, or none."
            )

    def initialise_head(self, model, batches):
        """Initialise a new output bias to the log of each word's share, as `CausalLM` does."""
        bias = model.get_layer("lm_output").bias
        if np.any(ops.convert_to_numpy(bias)):
            return
        texts, size = batches.encodings, bias.shape[0]
        counts = np.full(size, ADDED)
        for i in range(len(texts)):
            ids, _ = texts.template.around(texts.ids(i))
            np.add.at(counts, np.where(ids < size, ids, UNKNOWN_WORD), 1)
        bias.assign(np.log(counts / counts.sum()))

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `SpelledBatches` of a corpus."""
        template = SpecialTokenTemplate.from_tokenizer(tokenizer)
        return SpelledBatches(
            Segments.from_corpus(corpus, template, max_length),
            batch_size,
            spell(tokenizer.tokens_by_id()),
            shuffle=shuffle,
            seed=seed,
            pad_token_id=tokenizer.pad_token_id,
        )

    def losses(self, labels, outputs, sample_weight=None):
        """Return the mean cross-entropy of each direction for the words (B, L)."""
        return {
            f"{direction}_loss": token_cross_entropy(words, logits, sample_weight)
            for direction, (words, logits) in _predictions(labels, outputs).items()
        }

    def scores(self, labels, outputs):
        """Return the log-likelihood and the accuracy of each direction."""
        return {
            f"{direction}_{name}": score
            for direction, (words, logits) in _predictions(labels, outputs).items()
            for name, score in token_scores(words, {"logits": logits}).items()
        }


def _predictions(labels, outputs):
    """Return {direction: (labels, logits)} for the words (B, L) of texts, -100 at padding."""
    forward, backward = outputs["forward_logits"], outputs["backward_logits"]
    words = ops.where(labels < forward.shape[-1], labels, UNKNOWN_WORD)
    # A text ends where the next position is padding, and there is no word before the first.
    before = ops.where(words[:, 1:] == IGNORED, IGNORED, words[:, :-1])
    return {"forward": (words[:, 1:], forward[:, :-1]), "backward": (before, backward[:, 1:])}


class SpelledBatches(LengthBatches):
    """Batches of texts with `characters` (B, L, W), and their words as labels (B, L).

    Args:
        encodings, batch_size, options: as in `LengthBatches`.
        spellings: (words, 50), from `spell`, those of the vocabulary.
    """

    def __init__(self, encodings, batch_size, spellings, **options):
        super().__init__(encodings, batch_size, **options)
        self.spellings = spellings

    def batch(self, indices):
        (inputs,) = super().batch(indices)
        ids = inputs["token_ids"]
        labels = np.where(inputs["padding_mask"] > 0, ids, IGNORED)
        return inputs | {"characters": narrow(self.spellings[ids])}, labels

    def fingerprint(self):
        digest = hashlib.sha256(super().fingerprint().encode())
        digest.update(self.spellings)
        return digest.hexdigest()

    def signature(self):
        (inputs,), ids = super().signature(), tf.TensorSpec((None, None), "int32")
        return inputs | {"characters": tf.TensorSpec((None, None, None), "int32")}, ids
