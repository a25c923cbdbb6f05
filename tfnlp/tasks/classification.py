"""Classification of texts, or of pairs of texts."""

import numpy as np
from scipy import special

import tfnlp
from tfnlp import functional
from tfnlp.tasks.class_weights import check_class_weights
from tfnlp.tasks.classifier_settings import ClassLoss, Decision, changed
from tfnlp.tasks.kinds import CLASSIFIER
from tfnlp.tasks.selective_classification import coverage_scores, selective_threshold
from tfnlp.tasks.task import Task
from tfnlp.tasks.temperature_scaling import calibration_error, fit_temperature
from tfnlp.text.reading.readers import check_label_names
from tfnlp.utils.errors import InputError

SCORES = ("accuracy", "matthews", "macro_f1", "f1", "calibration_error")
SCORES += ("coverage", "selective_accuracy")


class Classification(Task):
    """Classification of a text or pair (Devlin et al. 2019, section 4.1).

    The examples may have a probability for each label (`SoftExamples`), which are learned then.

    Args:
        label_names: the classes in order of their ids.
        monitor: "accuracy", "matthews" (the correlation that CoLA uses), "macro_f1" (the mean over
            classes), "f1" (that of `positive_label`, as MRPC and QQP use), "calibration_error" of
            a calibrated one, "coverage" (the share of texts with an answer) or
            "selective_accuracy" (the accuracy of these) of one that rejects, or "loss".
        positive_label: the class that `f1` scores; None for no `f1`.
        linear: whether to report linear classifiers of bags of words beside a model's scores.
        class_loss: a `ClassLoss`; one without options where None.
        decision: a `Decision`; the most probable class for each text where None. A text without an
            answer counts as wrong in all scores but "selective_accuracy".

    Attributes:
        threshold: that of the decision, or the one chosen on dev.

    Raises:
        InputError: for fewer than 2 classes, an empty or duplicate class name, an unknown
            `positive_label`, an unavailable `monitor`, weights of another number, or a class that
            is called like no answer.
    """

    kind = CLASSIFIER

    def __init__(
        self,
        label_names,
        monitor="accuracy",
        positive_label=None,
        linear=False,
        class_loss=None,
        decision=None,
    ):
        check_label_names(label_names, least=2)
        names = [str(name).strip() for name in label_names]
        self.label_names, self.positive_label = label_names, positive_label
        self.num_classes = len(label_names)
        self.linear = linear
        self.class_loss = class_loss or ClassLoss()
        check_class_weights(self.class_loss.class_weights, self.num_classes)
        decision = decision or Decision()
        if decision.rejects and (decision.none_label in names or not decision.none_label.strip()):
            raise InputError(
                f"none_label={decision.none_label} must be a name that no class has; give another."
            )
        self.decision, self.threshold = decision, decision.threshold
        self.calibrated = decision.calibrated
        self.select_by(monitor)
        if positive_label is not None and str(positive_label) not in names:
            raise InputError(
                f"positive_label={positive_label} is not one of the labels ({', '.join(names)})."
            )
        self.positive_id = None if positive_label is None else names.index(str(positive_label))

    def select_by(self, monitor):
        if monitor == "f1" and self.positive_label is None:
            raise InputError(
                "monitor=f1 scores one class; name it as `positive_label`, or take "
                "monitor=macro_f1, the mean over classes."
            )
        super().select_by(monitor)

    @property
    def scores(self):
        absent = {"f1"} if self.positive_label is None else set()
        absent |= set() if self.calibrated else {"calibration_error"}
        absent |= set() if self.decision.rejects else {"coverage", "selective_accuracy"}
        return tuple(name for name in SCORES if name not in absent)

    @property
    def settings(self):
        if not self.decision.rejects:
            return None
        return {"threshold": self.threshold, "none_label": self.decision.none_label}

    @property
    def tuned_settings(self):
        return () if self.decision.selective_accuracy is None else ("threshold",)

    def decisive(self):
        return changed(self.class_loss) | changed(self.decision)

    def encode(self, tokenizer, examples, max_length):
        encodings = tokenizer.encode(examples.texts, examples.pairs, max_length)
        probabilities = getattr(examples, "probabilities", None)
        return encodings, examples.labels if probabilities is None else probabilities

    def loss(self, labels, outputs, sample_weight=None):
        losses = functional.weighted_losses
        soft = len(labels.shape) > 1
        cross_entropy = losses.soft_cross_entropy if soft else losses.cross_entropy
        return cross_entropy(
            labels,
            outputs["logits"],
            sample_weight,
            class_weights=self.class_loss.class_weights,
            gamma=self.class_loss.focal_gamma,
        )

    def targets(self, examples):
        """Return the ids of the labels."""
        return examples.labels

    def calibrate(self, model, examples, outputs):
        logits, labels = np.stack(outputs["logits"]), np.asarray(examples.labels)
        temperature = fit_temperature(logits, labels)
        tfnlp.models.scale_logits(model, 1 / temperature)
        error = calibration_error(logits, labels)
        figures = {"temperature": temperature, "dev_calibration_error_before": error}
        return outputs | {"logits": logits / temperature}, figures

    def tune(self, examples, outputs):
        if self.decision.selective_accuracy is not None:
            ids, p = _most_probable(outputs)
            right = ids == np.asarray(examples.labels)
            self.threshold = selective_threshold(p, right, self.decision.selective_accuracy)

    def log_likelihood(self, examples, outputs):
        log_p = special.log_softmax(np.stack(outputs["logits"]), axis=1)
        return log_p[np.arange(len(log_p)), examples.labels]

    def score_outputs(self, examples, outputs):
        if not self.calibrated:
            return {}
        logits, labels = np.stack(outputs["logits"]), np.asarray(examples.labels)
        return {"calibration_error": calibration_error(logits, labels)}

    def decode(self, examples, encodings, outputs):
        ids, p = _most_probable(outputs)
        names = zip(self.names_of(ids), p, strict=True)
        return [name if x >= self.threshold else self.decision.none_label for name, x in names]

    def names_of(self, ids):
        """Return the names of labels by their ids."""
        return [self.label_names[i] for i in ids]

    def score_predictions(self, examples, predictions):
        from sklearn import metrics  # takes a second, which the first step would wait for

        ids = {name: i for i, name in enumerate(self.label_names)}
        if self.decision.rejects:
            ids[self.decision.none_label] = -1
        predicted = np.array([ids[name] for name in predictions])
        labels = np.asarray(examples.labels)
        classes = sorted({*labels, *predicted} - {-1})
        scores = {
            "accuracy": float(np.mean(predicted == labels)),
            "matthews": float(metrics.matthews_corrcoef(labels, predicted)),
            "macro_f1": float(
                metrics.f1_score(
                    labels, predicted, labels=classes, average="macro", zero_division=0
                )
            ),
        }
        if self.positive_id is not None:
            positive = labels == self.positive_id, predicted == self.positive_id
            scores["f1"] = float(metrics.f1_score(*positive, zero_division=0))
        if self.decision.rejects:
            scores |= coverage_scores(predicted == labels, predicted >= 0)
        return scores

    def answers(self, examples, predictions):
        return [self.label_names[i] for i in examples.labels], predictions

    def baseline(self, examples):
        majority = self.label_names[np.bincount(examples.labels).argmax()]
        return self.score_predictions(examples, [majority] * len(examples.labels))


def _most_probable(outputs):
    """Return the id and the probability of the most probable class of each text, (texts,)."""
    # In float64: in float32 neighbours have no number between them.
    p = special.softmax(np.stack(outputs["logits"]).astype("float64"), axis=1)
    return p.argmax(1), p.max(1)
