"""Classes of texts, or of pairs of texts."""

import numpy as np
from sklearn import metrics

from tfnlp.losses import cross_entropy
from tfnlp.text.readers import check_label_names


class Classification:
    """One of several classes for each text or pair (Devlin et al. 2019, section 4.1).

    Args:
        label_names: the classes in order of their ids.
        monitor: "accuracy", "matthews" (the correlation that CoLA is scored by) or "f1" (the
            mean over classes).

    Raises:
        InputError: for fewer than 2 classes, or one without a name or given twice.
    """

    head = "classifier"
    settings = None
    outputs = ("logits",)

    def __init__(self, label_names, monitor="accuracy"):
        check_label_names(label_names, least=2)
        self.label_names = label_names
        self.num_classes = len(label_names)
        self.monitor = monitor

    def encode(self, tokenizer, examples, max_length):
        encodings = tokenizer.encode(examples.texts, examples.pairs, max_length)
        return encodings, examples.labels

    def loss(self, labels, outputs, sample_weight=None):
        return cross_entropy(labels, outputs["logits"], sample_weight)

    def score(self, examples, encodings, outputs):
        logits = np.stack(outputs["logits"])  # (examples, C)
        found, labels = logits.argmax(1), np.asarray(examples.labels)
        return {
            "accuracy": float(np.mean(found == labels)),
            "matthews": float(metrics.matthews_corrcoef(labels, found)),
            "f1": float(metrics.f1_score(labels, found, average="macro", zero_division=0)),
        }
