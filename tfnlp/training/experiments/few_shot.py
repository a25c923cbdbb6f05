"""Few-shot fine-tuning: an encoder by pairs of labelled texts, then a head on their vectors."""

import dataclasses
import functools

import numpy as np

from tfnlp.models import check_lengths
from tfnlp.tasks.sentence_vectors import SentenceVectors, TextGroups
from tfnlp.tasks.vector_settings import VectorSettings
from tfnlp.training.experiments.finetuning import FineTuning, encode_batches, encode_splits
from tfnlp.training.run.inference import predictor
from tfnlp.training.step.trainer import FineTuner
from tfnlp.utils.errors import InputError

# Texts whose pairs, half their square, still fit memory.
MOST_TEXTS = 2000
# Likeness of a pair is 1 for texts of one label, else 0.
PAIRS = SentenceVectors(VectorSettings(loss="cosine"))


@dataclasses.dataclass
class FewShotTuning(FineTuning):
    """SetFit (Tunstall et al. 2022, section 3): a classifier from some texts of each label.

    The encoder learns from pairs of the texts that the cosine of their vectors is 1 where the
    labels are alike, else 0. The head is a logistic regression of the vectors, fitted anew before
    each look at dev.

    Args:
        task: a `tfnlp.tasks.Classification`.
        model: a classifier of the vectors of texts, see `vectors` of `build_model`.
        data, tokenizer, config, run, compress: as in `FineTuning`.

    Raises:
        InputError: by `run_all`, as in `FineTuning`, for a label without a training text, and for
            more texts than have their pairs in memory.
    """

    fitted = None  # the step of the head

    def check(self):
        super().check()
        train = self.data.train
        if len(train) > MOST_TEXTS:
            raise InputError(
                f"`train` has {len(train):,} texts, too many for all their pairs; give `shots`, "
                "the texts to draw from each label, or fine-tune a classifier."
            )
        for i in sorted({*range(len(train.label_names))} - {*train.labels}):
            raise InputError(
                f"`train` has no text with the label {train.label_names[i]!r}; give some."
            )

    def encode(self):
        splits, settings = self.data.parts(), (self.config, self.data.max_length)
        texts = splits.pop("train")
        pairs = {"train": label_pairs(texts, self.config.seed)}
        batches = encode_splits(PAIRS, self.tokenizer, pairs, *settings)
        check_lengths(batches["train"], self.model)
        size = self.config.batch_size
        self.texts = encode_batches(self.task, self.tokenizer, texts, self.data.max_length, size)
        return batches | encode_splits(self.task, self.tokenizer, splits, *settings)

    def make_trainer(self):
        self.model.get_layer("classifier").trainable = False
        return FineTuner(self.model, PAIRS)

    @functools.cached_property
    def _embed(self):
        return predictor(self.model, ("embedding",))

    def fit_head(self):
        """Set the classifier to the logistic regression of the training texts' vectors."""
        step = int(self.trainer.optimizer.iterations)
        if step == self.fitted:  # once for dev and for the folder
            return
        self.fitted = step
        vectors = np.stack(self._embed(self.texts)["embedding"])
        weights = logistic_head(vectors, self.data.train.labels)
        self.model.get_layer("classifier").set_weights(weights)

    def evaluate_dev(self):
        self.fit_head()
        return super().evaluate_dev()

    def save(self, folder):
        self.fit_head()  # also within an epoch
        super().save(folder)


def label_pairs(examples, seed):
    """Return all pairs of texts, each with itself too, as `TextGroups` with the score 1 or 0.

    Pairs of the rarer score are repeated, so that both are as many (Tunstall et al. 2022, section
    3.1, with the oversampling of its library).

    Args:
        examples: `tfnlp.text.Examples` with labels.
        seed: of the order, which decides the pairs that are repeated.
    """
    first, second = np.triu_indices(len(examples))
    order = np.random.default_rng(seed).permutation(len(first))
    first, second = first[order], second[order]
    labels = np.asarray(examples.labels)
    alike = labels[first] == labels[second]
    count = max(alike.sum(), (~alike).sum())
    places = [np.resize(np.flatnonzero(which), count) for which in (alike, ~alike)]
    chosen = np.stack(places, axis=1).ravel()
    texts = [(examples.texts[first[i]], examples.texts[second[i]]) for i in chosen]
    return TextGroups(texts, [float(alike[i]) for i in chosen])


def logistic_head(vectors, labels):
    """Return kernel (D, C) and bias (C,) of the logistic regression of vectors.

    With 2 classes the logits are -z / 2 and z / 2, whose softmax is the sigmoid of z.

    Args:
        vectors: (texts, D).
        labels: their classes, each from 0 to C - 1 at least once.
    """
    from sklearn.linear_model import LogisticRegression  # takes a second

    model = LogisticRegression().fit(vectors, labels)
    kernel, bias = model.coef_.T, model.intercept_
    if len(bias) == 1:
        kernel, bias = (np.concatenate([-x / 2, x / 2], axis=-1) for x in (kernel, bias))
    return [kernel, bias]
