"""The model that is fitted to distil: a student, its teacher's outputs, and their losses."""

import keras
from keras import ops

from distill.teacher_outputs import output_key


class Distiller(keras.Model):
    """A student with a hard-label loss and any number of distillation losses.

    The loss is `hard_label_weight * CE(labels, logits) + sum of weight * distillation loss`
    in training, and the first term alone in evaluation. What a call or `predict` gives are the
    student's logits. The student stays an ordinary model: save it, not the distiller.

    Args:
        student: a `keras.Model` with the outputs that the losses compare.
        losses: (weight, `keras.distillation.DistillationLoss`) pairs, see `distill.losses`.
        teacher: a `keras.Model` with the outputs that the losses compare, run once on each
            batch; None if the batches bring the outputs (`distill.teacher_outputs`).
        hard_label_weight: of the cross-entropy with the labels.

    Batches are (inputs, labels) where there is a teacher, else (inputs, dict of `labels` and
    the cached outputs).
    """

    def __init__(self, student, losses, teacher=None, hard_label_weight=0.5, **kwargs):
        super().__init__(**kwargs)
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
        self.cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
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
        return self(inputs, training=False)["logits"]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        labels = y["labels"] if isinstance(y, dict) else y
        loss = self.hard_label_weight * self.cross_entropy(labels, y_pred["logits"])
        if not training:
            return loss
        teacher_outputs = self._cached(y) if isinstance(y, dict) else self.run_teacher(x)
        mask = ops.cast(x["padding_mask"], "float32")
        for (weight, distillation_loss), tracker in zip(
            self.weighted_losses, self.trackers, strict=True
        ):
            part = distillation_loss.compute_loss(teacher_outputs, y_pred, padding_mask=mask)
            tracker.update_state(part)
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
        labels = y["labels"] if isinstance(y, dict) else y
        self.accuracy.update_state(labels, y_pred["logits"])
        return self.get_metrics_result()


def _snake_case(name):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
