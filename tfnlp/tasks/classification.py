"""Classification of texts, or of pairs of texts."""

import numpy as np
from sklearn import metrics

import tfnlp
from tfnlp.text.readers import check_label_names, check_positive_label
from tfnlp.utils.errors import unknown_name

SCORES = ("accuracy", "matthews", "macro_f1", "f1")


class Classification:
    """Classification of a text or pair (Devlin et al. 2019, section 4.1).

    Args:
        label_names: the classes in order of their ids.
        monitor: "accuracy", "matthews" (the correlation that CoLA uses), "macro_f1" (the mean over
            classes) or "f1" (that of `positive_label`, as MRPC and QQP use).
        positive_label: the class that `f1` scores; None for no `f1`.

    Raises:
        InputError: for fewer than 2 classes, an empty or duplicate class name, an unknown
            `positive_label`, or an unavailable `monitor`.
    """

    head = "classifier"
    settings = None
    outputs = ("logits",)

    def __init__(self, label_names, monitor="accuracy", positive_label=None):
        check_label_names(label_names, least=2)
        if monitor not in SCORES:
            raise unknown_name("monitor", monitor, SCORES)
        check_positive_label(label_names, monitor, positive_label)
        names = [str(name).strip() for name in label_names]
        self.positive_id = None if positive_label is None else names.index(str(positive_label))
        self.label_names = label_names
        self.num_classes = len(label_names)
        self.monitor = monitor

    def encode(self, tokenizer, examples, max_length):
        encodings = tokenizer.encode(examples.texts, examples.pairs, max_length)
        return encodings, examples.labels

    def loss(self, labels, outputs, sample_weight=None):
        return tfnlp.weighted_losses.cross_entropy(labels, outputs["logits"], sample_weight)

    def answers(self, examples, encodings, outputs):
        found = np.stack(outputs["logits"]).argmax(1)  # (examples,)
        return tuple([self.label_names[i] for i in ids] for ids in (examples.labels, found))

    def baseline(self, train, examples):
        majority = np.bincount(train.labels).argmax()
        return self._scores(examples.labels, np.full(len(examples.labels), majority))

    def score(self, examples, encodings, outputs):
        return self._scores(examples.labels, np.stack(outputs["logits"]).argmax(1))

    def _scores(self, labels, found):
        labels = np.asarray(labels)
        scores = {
            "accuracy": float(np.mean(found == labels)),
            "matthews": float(metrics.matthews_corrcoef(labels, found)),
            "macro_f1": float(metrics.f1_score(labels, found, average="macro", zero_division=0)),
        }
        if self.positive_id is not None:
            right = labels == self.positive_id, found == self.positive_id
            scores["f1"] = float(metrics.f1_score(*right, zero_division=0))
        return scores
