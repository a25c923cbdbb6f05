"""Regression: a number for each text or pair, such as the similarity of two sentences."""

import dataclasses

import numpy as np
from scipy import stats

import tfnlp
from tfnlp import functional
from tfnlp.tasks.kinds import SCORER
from tfnlp.tasks.task import Task
from tfnlp.text.reading.readers import Examples, as_finite_number, read_columns

SCORES = ("pearson", "spearman", "mean_squared_error")


@dataclasses.dataclass
class ScoredExamples(Examples):
    """Texts or pairs with a number each in `labels`."""


def read_scored_pairs(path, text_column="sentence1", pair_column="sentence2", column="score"):
    """Read texts or pairs with scores from a TSV, CSV, JSON or JSON Lines file.

    Raises:
        InputError: as in `read_columns`, and for a score that is not a finite number.
    """
    texts, pairs, labels = [], [], []
    for place, row in read_columns(path, [c for c in (text_column, pair_column, column) if c]):
        labels.append(as_finite_number(row[column], f"{path}, {place}: {column}"))
        texts.append(row[text_column])
        if pair_column:
            pairs.append(row[pair_column])
    return ScoredExamples(texts, pairs if pair_column else None, labels)


class Regression(Task):
    """Regression by mean squared error (Devlin et al. 2019, STS-B).

    The output bias of a new model starts at the mean of the training labels.

    Args:
        monitor: "pearson" or "spearman", the correlations that STS-B uses, "mean_squared_error",
            or "loss".

    Raises:
        InputError: for an unavailable `monitor`.
    """

    kind = SCORER
    num_classes = SCORER.num_classes
    label_names = ("score",)
    scores = SCORES

    def __init__(self, monitor="pearson"):
        self.select_by(monitor)

    def initialise_head(self, model, examples):
        """Set the output bias of a new head to the mean of the labels.

        Otherwise a short training spends its steps on the way there from 0. A bias of exactly 0
        counts as new. Heads without a bias (GPT's) stay unchanged.
        """
        tfnlp.models.start_output_bias(model, [np.mean(examples.labels)])

    def encode(self, tokenizer, examples, max_length):
        encodings = tokenizer.encode(examples.texts, examples.pairs, max_length)
        return encodings, examples.labels

    def loss(self, labels, outputs, sample_weight=None):
        return functional.weighted_losses.squared_error(
            labels, outputs["logits"][:, 0], sample_weight
        )

    def decode(self, examples, encodings, outputs):
        return np.stack(outputs["logits"])[:, 0]  # (examples,)

    def score_predictions(self, examples, predictions):
        labels, predictions = np.asarray(examples.labels), np.asarray(predictions)
        error = float(np.mean((predictions - labels) ** 2))
        return correlations(predictions, labels) | {"mean_squared_error": error}

    def answers(self, examples, predictions):
        return list(examples.labels), list(map(float, predictions))

    def baseline(self, examples):
        mean = np.full(len(examples.labels), np.mean(examples.labels))
        return self.score_predictions(examples, mean)


def correlations(predictions, labels):
    """Return Pearson's and Spearman's correlation; 0 of a constant, as of an untrained model."""
    varied = np.ptp(predictions) and np.ptp(labels)
    return {
        "pearson": float(stats.pearsonr(predictions, labels).statistic if varied else 0.0),
        "spearman": float(stats.spearmanr(predictions, labels).statistic if varied else 0.0),
    }
