"""Base class of pretraining objectives."""

import abc
from typing import ClassVar

from keras import ops

from tfnlp.configs import check_head, check_packing
from tfnlp.functional.weighted_losses import correct, log_likelihood
from tfnlp.text.batching.batches import IGNORED
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings


class Objective(Settings, abc.ABC):
    """A pretraining objective: the batches of a corpus, and the losses of a batch.

    Attributes:
        head: the head of the model, as in `build_model`.
        loss_name: the name of the loss, or of its total.
        memory: whether a batch continues the one before, so that the model keeps a memory.
        reads_entities: whether the batches have entities beside the tokens.
    """

    head: ClassVar[str]
    loss_name: ClassVar[str]
    memory: ClassVar[bool] = False
    reads_entities: ClassVar[bool] = False

    @property
    def packed(self):
        """True if a row holds several documents, each of which sees itself alone."""
        return getattr(self, "packing", None) == "masked"

    @property
    def loss_weights(self):
        """The weight of each loss in the total loss."""
        return {self.loss_name: 1.0}

    def check(self, config, tokenizer):
        """Raise an InputError if the model's config or the tokenizer does not fit."""
        check_head(config, self.head)
        if self.packed:
            check_packing(config)
        if config.reads_entities and not self.reads_entities:
            raise InputError(
                "The model reads entities, which only objective=denoising_entities gives; take "
                "that, or another model."
            )

    def initialise_head(self, model, batches):
        """Initialise a new model's head from the training batches; by default, do nothing."""

    def trained(self, model):
        """Return the model to fit, from the inputs of the batches to the outputs of `losses`.

        It shares all weights with `model`, which it is by default. With `memory` there is a
        further argument `batch_size`, the number of lanes over all devices.
        """
        return model

    @abc.abstractmethod
    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the batches of a corpus.

        Args:
            corpus: see `tfnlp.objectives.Corpus`.
            tokenizer: the tokenizer of the corpus.
            batch_size: B.
            max_length: the maximum number of ids of a text, including special tokens.
            seed: the seed of the order and of all draws.
            shuffle: whether each epoch has its own order.

        Raises:
            InputError: if the corpus or the lengths do not fit.
        """

    @abc.abstractmethod
    def losses(self, labels, outputs, sample_weight=None):
        """Return {name: loss} of a batch, unweighted, means by `weighted_mean`."""

    def scores(self, labels, outputs):
        """Return {name: (sum, weight)} of a batch; the quotient of both is the score.

        By default they are `token_scores`.
        """
        return token_scores(labels, outputs)


def token_scores(labels, outputs):
    """Return the log-likelihood of labels (B, L), ignoring -100, and the accuracy.

    Perplexity is the exponential of the negative mean log-likelihood.

    Args:
        labels: (B, L) integers.
        outputs: a dict of `logits` (B, L, V), without label smoothing; or of the labels'
            `log_probabilities` (B, L), which have no accuracy.
    """
    real = ops.cast(ops.not_equal(labels, IGNORED), "float32")
    if "logits" not in outputs:
        total = ops.sum(outputs["log_probabilities"] * real)
        return {"log_likelihood": (total, ops.sum(real))}
    return {
        "log_likelihood": log_likelihood(labels, outputs["logits"], real),
        "accuracy": correct(labels, outputs["logits"], real),
    }


def accuracy(labels, logits):
    """Return the number of labels (...) with the largest logit, and of all labels except -100."""
    return correct(labels, logits, ops.cast(ops.not_equal(labels, IGNORED), "float32"))
