"""Classification of texts, or of pairs of texts."""

import numpy as np

import tfnlp
from tfnlp import baselines, functional
from tfnlp.tasks.class_weights import check_class_weights
from tfnlp.tasks.kinds import CLASSIFIER
from tfnlp.tasks.task import Task
from tfnlp.tasks.temperature_scaling import calibration_error, fit_temperature
from tfnlp.text.reading.readers import check_label_names, check_positive_label
from tfnlp.utils.errors import unknown_name

SCORES = ("accuracy", "matthews", "macro_f1", "f1")


class Classification(Task):
    """Classification of a text or pair (Devlin et al. 2019, section 4.1).

    The examples may have a probability for each label (`SoftExamples`), which are learned then.

    Args:
        label_names: the classes in order of their ids.
        monitor: "accuracy", "matthews" (the correlation that CoLA uses), "macro_f1" (the mean over
            classes) or "f1" (that of `positive_label`, as MRPC and QQP use).
        positive_label: the class that `f1` scores; None for no `f1`.
        linear: whether to report linear classifiers of bags of words beside a model's scores.
        class_weights: (C,), the weight of each class's examples in the loss; None for 1.
        calibrated: whether the trained model's logits are divided by a temperature of the least
            cross-entropy on dev (Guo et al. 2017, section 4.2), which changes no answer.

    Raises:
        InputError: for fewer than 2 classes, an empty or duplicate class name, an unknown
            `positive_label`, or an unavailable `monitor`.
    """

    kind = CLASSIFIER

    def __init__(
        self,
        label_names,
        monitor="accuracy",
        positive_label=None,
        linear=False,
        class_weights=None,
        calibrated=False,
    ):
        check_label_names(label_names, least=2)
        if monitor not in SCORES:
            raise unknown_name("monitor", monitor, SCORES)
        check_positive_label(label_names, monitor, positive_label)
        names = [str(name).strip() for name in label_names]
        self.positive_id = None if positive_label is None else names.index(str(positive_label))
        self.label_names = label_names
        self.num_classes = len(label_names)
        self.monitor = monitor
        self.linear = linear
        check_class_weights(class_weights, self.num_classes)
        self.class_weights = class_weights
        self.calibrated = calibrated

    def encode(self, tokenizer, examples, max_length):
        encodings = tokenizer.encode(examples.texts, examples.pairs, max_length)
        probabilities = getattr(examples, "probabilities", None)
        return encodings, examples.labels if probabilities is None else probabilities

    def loss(self, labels, outputs, sample_weight=None):
        losses = functional.weighted_losses
        soft = len(labels.shape) > 1
        cross_entropy = losses.soft_cross_entropy if soft else losses.cross_entropy
        return cross_entropy(
            labels, outputs["logits"], sample_weight, class_weights=self.class_weights
        )

    def targets(self, examples):
        """Return the ids of the labels."""
        return examples.labels

    def calibrate(self, model, examples, outputs):
        """Divide a model's logits by the temperature that fits its outputs; return figures."""
        logits, labels = np.stack(outputs["logits"]), np.asarray(examples.labels)
        temperature = fit_temperature(logits, labels)
        tfnlp.models.scale_logits(model, 1 / temperature)
        error = calibration_error(logits, labels)
        return {"temperature": temperature, "dev_calibration_error_before": error}

    def score_outputs(self, examples, outputs):
        if not self.calibrated:
            return {}
        logits, labels = np.stack(outputs["logits"]), np.asarray(examples.labels)
        return {"calibration_error": calibration_error(logits, labels)}

    def decode(self, examples, encodings, outputs):
        return self.names_of(np.stack(outputs["logits"]).argmax(1))

    def names_of(self, ids):
        """Return the names of labels by their ids."""
        return [self.label_names[i] for i in ids]

    def score_predictions(self, examples, predictions):
        from sklearn import metrics  # takes a second, which the first step would wait for

        ids = {name: i for i, name in enumerate(self.label_names)}
        predicted = np.array([ids[name] for name in predictions])
        labels = np.asarray(examples.labels)
        scores = {
            "accuracy": float(np.mean(predicted == labels)),
            "matthews": float(metrics.matthews_corrcoef(labels, predicted)),
            "macro_f1": float(
                metrics.f1_score(labels, predicted, average="macro", zero_division=0)
            ),
        }
        if self.positive_id is not None:
            positive = labels == self.positive_id, predicted == self.positive_id
            scores["f1"] = float(metrics.f1_score(*positive, zero_division=0))
        return scores

    def answers(self, examples, predictions):
        return [self.label_names[i] for i in examples.labels], predictions

    def baseline(self, examples):
        majority = self.label_names[np.bincount(examples.labels).argmax()]
        return self.score_predictions(examples, [majority] * len(examples.labels))

    def linear_figures(self, splits):
        return baselines.linear_figures(self, splits) if self.linear else {}
