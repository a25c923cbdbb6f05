"""The model that is fitted to distil: a student, its teacher's outputs, and their losses."""

import keras
from keras import ops

from distill.learning.losses import logits_of
from distill.learning.teacher_outputs import output_key
from tfnlp.losses import cross_entropy, entry_weights, whole
from tfnlp.text.batches import IGNORED
from tfnlp.training.strategy import UnequalShares


class Distiller(UnequalShares, keras.Model):
    """A student with a hard-label loss and any number of distillation losses.

    The loss is `hard_label_weight * CE(labels, logits) + sum of weight * distillation loss`
    in training, and the first term alone in evaluation. What a call or `predict` gives are the
    student's logits. The student stays an ordinary model: save it, not the distiller.

    Args:
        student: a `keras.Model` with the outputs that the losses compare.
        losses: (weight, `keras.distillation.DistillationLoss`) pairs, see
            `distill.learning.losses`.
        teacher: a `keras.Model` with the outputs that the losses compare, run once on each
            batch; None if the batches bring the outputs (`distill.learning.teacher_outputs`).
        hard_label_weight: of the cross-entropy with the labels.

    Batches are (inputs, labels) where there is a teacher, else (inputs, dict of `labels` and
    the cached outputs); then `sample_weight` where examples are to count more or less, in every
    loss and in the accuracy. Logits are those of a text, (B, C), or of each token, (B, L, C); a
    label of -100 has no hard-label loss.

    Raises:
        ValueError: where no loss is left, and at the first batch for a student without logits of
            2 or more classes.
    """

    def __init__(self, student, losses, teacher=None, hard_label_weight=0.5, **kwargs):
        super().__init__(**kwargs)
        if not losses and not hard_label_weight:
            raise ValueError(
                f"losses={losses!r} and hard_label_weight={hard_label_weight} leave nothing to "
                "learn; give a loss or a weight above 0."
            )
        self.student = student
        self.weighted_losses = losses
        self.hard_label_weight = hard_label_weight
        # Layers that the losses learn, tracked as the distiller's own.
        projections = [getattr(loss, "projection", None) for _, loss in losses]
        self.projections = [p for p in projections if p is not None]
        # In a closure the teacher is not tracked: neither trained nor saved.
        self.run_teacher = teacher and (lambda inputs: teacher(inputs, training=False))
        self.trackers = [
            keras.metrics.Mean(name=_snake_case(type(loss).__name__)) for _, loss in losses
        ]
        self.accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        self.built = True

    def call(self, inputs, training=None):
        return self.student(inputs, training=training)

    def evaluate(self, *args, **kwargs):
        results = super().evaluate(*args, **kwargs)
        if not isinstance(results, dict):
            return results
        # The distillation losses are of the training alone.
        return {key: results[key] for key in ("loss", "accuracy")}

    def predict_step(self, data):
        inputs = data[0] if isinstance(data, tuple) else data
        return logits_of(self(inputs, training=False))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        mask = _padding_mask(x)
        loss = self.hard_label_weight * cross_entropy(*_labelled(y, y_pred, mask, sample_weight))
        if not training:
            return loss
        teacher_outputs = self._cached(y) if isinstance(y, dict) else self.run_teacher(x)
        batch_size = ops.shape(logits_of(y_pred))[0]
        for (weight, distillation_loss), tracker in zip(
            self.weighted_losses, self.trackers, strict=True
        ):
            part = distillation_loss.compute_loss(
                teacher_outputs, y_pred, padding_mask=mask, sample_weight=sample_weight
            )
            tracker.update_state(whole(part), sample_weight=batch_size)
            loss = loss + weight * part
        return loss

    def _cached(self, y):
        """A batch's cached outputs in the form that a teacher gives them."""
        outputs = {}
        for _, distillation_loss in self.weighted_losses:
            for output, index in distillation_loss.reads():
                value = y[output_key(output, index)]
                if index is None:
                    outputs[output] = value
                else:
                    outputs.setdefault(output, {})[index] = value
        return outputs

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, logits, *weights = _labelled(y, y_pred, _padding_mask(x), sample_weight)
        real = ops.not_equal(labels, IGNORED)
        self.accuracy.update_state(labels, logits, entry_weights(labels, real, *weights))
        return self.get_metrics_result()


def _padding_mask(inputs):
    """(B, L) float32, or None where the inputs have none."""
    mask = inputs.get("padding_mask") if isinstance(inputs, dict) else None
    return mask if mask is None else ops.cast(mask, "float32")


def _labelled(y, y_pred, mask, sample_weight):
    """Labels, logits, and the weights of the labels: of real tokens alone where each has one."""
    labels = y["labels"] if isinstance(y, dict) else y
    logits = logits_of(y_pred)
    return labels, logits, mask if len(logits.shape) == 3 else None, sample_weight


def _snake_case(name):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
