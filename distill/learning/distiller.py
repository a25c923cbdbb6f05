"""The model that is fitted to distil: a student, its teacher's outputs, and their losses."""

import keras
from keras import ops

from distill.learning.losses import pick_output
from distill.learning.teacher_outputs import output_key
from tfnlp.errors import InputError
from tfnlp.losses import whole
from tfnlp.training.strategy import CompressedSteps, UnequalShares


class Distiller(CompressedSteps, UnequalShares, keras.Model):
    """A student with its task's loss and any number of distillation losses.

    The loss is `hard_label_weight * task.loss(labels, outputs) + sum of weight * distillation
    loss` in training; each is also shown by itself, without its weight: `hard_label_loss`,
    `soft_label_loss` and so on by class. Evaluation gives `hard_label_loss` alone. `predict`
    gives the task's outputs: a tensor where it has one, else a dict. The student stays an
    ordinary model: save it, not the distiller.

    Args:
        student: a `keras.Model` with the outputs that the task and the losses read.
        task: see `tfnlp.tasks`; its loss is that of the hard labels.
        losses: (weight, `keras.distillation.DistillationLoss`) pairs, see
            `distill.learning.losses`.
        teacher: a `keras.Model` with the outputs that the losses compare, run once on each
            batch; None if the batches bring the outputs (`distill.learning.teacher_outputs`).
        hard_label_weight: of the task's loss.

    Batches are (inputs, labels) where there is a teacher, else (inputs, dict of `labels` and
    the cached outputs); then `sample_weight` where examples are to count more or less, in every
    loss.

    Raises:
        InputError: where no loss is left.
        ValueError: at the first batch, for a model without the outputs.
    """

    def __init__(self, student, task, losses, teacher=None, hard_label_weight=0.5, **kwargs):
        super().__init__(**kwargs)
        if not losses and not hard_label_weight:
            raise InputError(
                f"losses={losses!r} and hard_label_weight={hard_label_weight} leave nothing to "
                "learn; give a loss or a weight above 0."
            )
        self.student = student
        self.task = task
        self.weighted_losses = losses
        self.hard_label_weight = hard_label_weight
        # Layers that the losses learn, tracked as the distiller's own.
        projections = [getattr(loss, "projection", None) for _, loss in losses]
        self.projections = [p for p in projections if p is not None]
        # In a closure the teacher is not tracked: neither trained nor saved.
        self.run_teacher = teacher and (lambda inputs: teacher(inputs, training=False))
        self.hard_label_tracker = keras.metrics.Mean(name="hard_label_loss")
        self.trackers = [
            keras.metrics.Mean(name=_snake_case(type(loss).__name__)) for _, loss in losses
        ]
        self.built = True

    def call(self, inputs, training=None):
        return self.student(inputs, training=training)

    def evaluate(self, *args, **kwargs):
        results = super().evaluate(*args, **kwargs)
        if not isinstance(results, dict):
            return results
        # The other losses, and so their sum, are of the training alone.
        return {"hard_label_loss": results["hard_label_loss"]}

    def predict_step(self, data):
        inputs = data[0] if isinstance(data, tuple) else data
        found = self._task_outputs(self(inputs, training=False))
        return found if len(found) > 1 else found[self.task.outputs[0]]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        labels = y["labels"] if isinstance(y, dict) else y
        count = ops.shape(labels)[0]
        part = self.task.loss(labels, self._task_outputs(y_pred), sample_weight)
        self.hard_label_tracker.update_state(whole(part), sample_weight=count)
        loss = self.hard_label_weight * part
        if not training:
            return loss
        teacher_outputs = self._cached(y) if isinstance(y, dict) else self.run_teacher(x)
        for (weight, distillation_loss), tracker in zip(
            self.weighted_losses, self.trackers, strict=True
        ):
            part = distillation_loss.compute_loss(
                teacher_outputs,
                y_pred,
                padding_mask=_padding_mask(x),
                sample_weight=sample_weight,
                labels=labels,
            )
            tracker.update_state(whole(part), sample_weight=count)
            loss = loss + weight * part
        return loss

    def _task_outputs(self, outputs):
        return {key: pick_output(outputs, key) for key in self.task.outputs}

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


def _padding_mask(inputs):
    """(B, L) float32, or (B, choices, L); None where the inputs have none."""
    mask = inputs.get("padding_mask") if isinstance(inputs, dict) else None
    return mask if mask is None else ops.cast(mask, "float32")


def _snake_case(name):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
