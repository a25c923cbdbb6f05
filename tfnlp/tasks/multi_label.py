"""Classification of texts, or of pairs of texts, that have any number of labels each."""

import collections

import numpy as np
from scipy import special

import tfnlp
from tfnlp import functional
from tfnlp.tasks.class_weights import check_class_weights
from tfnlp.tasks.classifier_settings import ClassLoss, changed
from tfnlp.tasks.kinds import MULTI_LABEL_CLASSIFIER
from tfnlp.tasks.task import Task
from tfnlp.text.reading.readers import Examples, check_label_names
from tfnlp.utils.errors import InputError

SCORES = ("macro_f1", "micro_f1", "sample_f1", "exact_match", "mean_average_precision")
# How thresholds are chosen on dev: one for each label, or one for all.
CHOSEN = ("label", "all")


class MultiLabelClassification(Task):
    """Classification of a text or pair by labels that are independent of each other.

    The loss is the binary cross-entropy of each label's sigmoid. A label applies where its
    probability is at least its threshold.

    Args:
        label_names: the labels in order of their ids.
        monitor: "macro_f1" (the mean over labels), "micro_f1" (of all decisions), "sample_f1"
            (the mean over texts), "exact_match" (the share of texts with all labels right) or
            "mean_average_precision" (the mean of the area under precision by recall over the
            labels that occur), or "loss". A label that neither is right nor predicted anywhere
            has an F1 of 0; a text without any has 1.
        threshold: a number from 0 to 1; "label" for one for each label, or "all" for one for
            all, of the highest F1 on dev; 0.5 for a label that no text of dev has.
        class_loss: a `ClassLoss`; one without options where None.
        separator: what parts labels in a column of files, which a folder keeps for predictions.
        linear: as in `Classification`.

    Attributes:
        thresholds: (C,), of each label.

    Raises:
        InputError: for an empty or duplicate label, an unavailable `monitor`, a threshold outside
            0 to 1, or weights of another number.
    """

    kind = MULTI_LABEL_CLASSIFIER
    scores = SCORES

    def __init__(
        self,
        label_names,
        monitor="macro_f1",
        threshold="label",
        class_loss=None,
        linear=False,
        separator=",",
    ):
        check_label_names(label_names)
        self.select_by(monitor)
        self.label_names = label_names
        self.num_classes = len(label_names)
        self.chosen = threshold if threshold in CHOSEN else None
        self.thresholds = np.full(
            self.num_classes, 0.5 if self.chosen else as_threshold(threshold, CHOSEN)
        )
        self.class_loss = class_loss or ClassLoss()
        check_class_weights(self.class_loss.class_weights, self.num_classes)
        self.linear = linear
        self.separator = separator

    @property
    def settings(self):
        separator = {} if self.separator == "," else {"label_separator": self.separator}
        return {"thresholds": self.thresholds.tolist()} | separator

    @property
    def tuned_settings(self):
        return ("thresholds",) if self.chosen else ()

    def decisive(self):
        threshold = self.chosen or float(self.thresholds[0])
        of_threshold = {} if threshold == "label" else {"threshold": threshold}
        return changed(self.class_loss) | of_threshold

    def initialise_head(self, model, examples):
        """Set the new head's bias to the log-odds of each label in the training examples.

        Lin et al. 2017, 'Focal Loss', section 3.3. A head whose bias is not 0 counts as trained;
        one without a bias (GPT's) stays unchanged.
        """
        least = 0.5 / len(examples.labels)
        share = np.clip(self.targets(examples).mean(0), least, 1 - least)
        tfnlp.models.start_output_bias(model, np.log(share / (1 - share)))

    def encode(self, tokenizer, examples, max_length):
        encodings = tokenizer.encode(examples.texts, examples.pairs, max_length)
        return encodings, None if examples.labels is None else self.targets(examples)

    def targets(self, examples):
        """Return which labels apply, (examples, C) int32 of 0 and 1."""
        rows = np.zeros((len(examples.labels), self.num_classes), "int32")
        for row, ids in zip(rows, examples.labels, strict=True):
            row[list(ids)] = 1
        return rows

    def loss(self, labels, outputs, sample_weight=None):
        return functional.weighted_losses.binary_cross_entropy(
            labels,
            outputs["logits"],
            sample_weight,
            positive_weights=self.class_loss.class_weights,
            gamma=self.class_loss.focal_gamma,
        )

    def tune(self, examples, outputs):
        applies, probabilities = self.targets(examples), _probabilities(outputs)
        if self.chosen == "label":
            columns = zip(applies.T, probabilities.T, strict=True)
            self.thresholds = np.array([best_threshold(*column) for column in columns])
        elif self.chosen == "all":
            best = best_threshold(applies.ravel(), probabilities.ravel())
            self.thresholds = np.full(self.num_classes, best)

    def decode(self, examples, encodings, outputs):
        return self.names_of(_probabilities(outputs) >= self.thresholds)

    def names_of(self, rows):
        """Return the names of the labels that apply, a tuple for each row of (texts, C)."""
        return [tuple(self.label_names[i] for i in np.flatnonzero(row)) for row in rows]

    def log_likelihood(self, examples, outputs):
        logits = np.stack(outputs["logits"])
        return special.log_expit(np.where(self.targets(examples), logits, -logits)).sum(1)

    def score_outputs(self, examples, outputs):
        from sklearn import metrics  # takes a second, which the first step would wait for

        columns = zip(self.targets(examples).T, _probabilities(outputs).T, strict=True)
        areas = [metrics.average_precision_score(y, p) for y, p in columns if y.any()]
        return {"mean_average_precision": float(np.mean(areas or 0.0))}

    def score_predictions(self, examples, predictions):
        applies, predicted = self.targets(examples), self._rows(predictions)
        both = applies * predicted
        return {
            "macro_f1": float(np.mean(_f1(both, applies, predicted, axis=0))),
            "micro_f1": float(_f1(both, applies, predicted)),
            # No label is right where a text has none.
            "sample_f1": float(np.mean(_f1(both, applies, predicted, axis=1, empty=1.0))),
            "exact_match": float((applies == predicted).all(1).mean()),
        }

    def label_scores(self, examples, predictions):
        """Return {label: {"precision", "recall", "f1", "texts"}} of predictions."""
        applies, predicted = self.targets(examples), self._rows(predictions)
        both = applies * predicted
        right, texts = both.sum(0), applies.sum(0)
        scores = {
            "precision": right / np.maximum(predicted.sum(0), 1),
            "recall": right / np.maximum(texts, 1),
            "f1": _f1(both, applies, predicted, axis=0),
            "texts": texts,
        }
        rows = zip(*(column.tolist() for column in scores.values()), strict=True)
        return {
            label: dict(zip(scores, row, strict=True))
            for label, row in zip(self.label_names, rows, strict=True)
        }

    def _rows(self, predictions):
        """Return which labels are predicted, as of `targets`, from their names for each text."""
        ids = {name: i for i, name in enumerate(self.label_names)}
        return self.targets(
            Examples([], labels=[[ids[x] for x in names] for names in predictions])
        )

    def answers(self, examples, predictions):
        truth = self.names_of(self.targets(examples))
        return [", ".join(names) for names in truth], [", ".join(names) for names in predictions]

    def label_counts(self, examples):
        return collections.Counter(self.label_names[i] for ids in examples.labels for i in ids)

    def baseline(self, examples):
        commonest, _ = collections.Counter(examples.labels).most_common(1)[0]
        names = tuple(self.label_names[i] for i in commonest)
        return self.score_predictions(examples, [names] * len(examples.labels))


def best_threshold(applies, probabilities):
    """Return the threshold of the highest F1, 2 TP / (2 TP + FP + FN); 0.5 where no text applies.

    It lies midway between two neighbouring probabilities.

    Args:
        applies: (texts,), 1 where a label applies, else 0.
        probabilities: (texts,).
    """
    order = np.argsort(-probabilities, kind="stable")
    p, right = probabilities[order], np.cumsum(applies[order])
    if not len(p) or not right[-1]:
        return 0.5
    f1 = 2 * right / (np.arange(1, len(p) + 1) + right[-1])
    following = np.append(p[1:], 0.0)
    f1[p == following] = -1  # equal probabilities are on one side
    last = f1.argmax()
    return float((p[last] + following[last]) / 2)


def _f1(both, applies, predicted, axis=None, empty=0.0):
    """Return 2 TP / (2 TP + FP + FN) over an axis of (texts, C); `empty` where all are 0."""
    total = applies.sum(axis) + predicted.sum(axis)
    return np.where(total > 0, 2 * both.sum(axis) / np.maximum(total, 1), empty)


def _probabilities(outputs):
    logits = np.stack(outputs["logits"]).astype("float64")
    return special.expit(logits)


def as_threshold(text, others=()):
    """Return a threshold as a number; raise an InputError for none from 0 to 1.

    Args:
        text: the number, or a text of it.
        others: what else it may be, for the message.
    """
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        rest = f", or one of {', '.join(others)}, to be chosen on dev" if others else ""
        raise InputError(f"threshold={text} must be a number from 0 to 1{rest}.")
    return number
