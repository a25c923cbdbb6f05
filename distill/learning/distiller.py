"""Keras model for distillation: a student, its teacher's outputs, and their losses."""

import keras
from keras import ops

from distill.learning.teacher_outputs import output_key
from distill.learning.terms import at_step, pick_output
from tfnlp.tasks.kinds import kind_of_task
from tfnlp.training.step.trainer import Trainer, batch_rows
from tfnlp.utils.errors import InputError


class Distiller(Trainer):
    """Student model with its task's loss and the terms by which it learns from its teacher.

    The training loss is `hard_label_weight * task.loss(labels, outputs) + sum of weight * loss of
    each term`. Each part is also logged without its weight: `hard_label_loss`, and
    `soft_label_loss` and so on by the names of the terms. The loss of an evaluation is the task's
    alone. The student stays an ordinary model: save it, not the distiller.

    Args:
        student: a `keras.Model` with the outputs that the task and the terms read.
        task: see `tfnlp.tasks`; its loss is that of the hard labels. None without labels.
        terms: a list of `distill.learning.Term`, such as a function of `distill.learning.METHODS`
            returns. Their schedules follow the optimizer's steps.
        teacher: a `keras.Model` with the outputs that the terms compare, run once on each batch;
            None if the batches contain the outputs (`distill.learning.teacher_outputs`).
        hard_label_weight: of the task's loss.

    Batches are (inputs, labels) with a teacher, or (inputs,) without a task, else (inputs, dict of
    the cached outputs and, with a task, `labels`). A `sample_weight` may follow, which weights
    examples in every loss.

    Raises:
        InputError: if no loss is left.
    """

    def __init__(self, student, task, terms, teacher=None, hard_label_weight=0.5, **kwargs):
        super().__init__(**kwargs)
        if not terms and not hard_label_weight:
            raise InputError(
                f"terms={terms!r} and hard_label_weight={hard_label_weight} leave nothing to "
                "learn; give a term or a weight above 0."
            )
        self.student, self.task, self.terms = student, task, terms
        self.kind = kind_of_task(task)
        self.hard_label_weight = hard_label_weight
        self.task_loss = "hard_label_loss" if task else "task_loss"  # on dev
        # Trainable projections of the terms, each once, so that Keras tracks them.
        projections = {id(term.projection): term.projection for term in terms if term.projection}
        self.projections = list(projections.values())
        # Keras does not track a model in a closure, so the teacher is neither trained nor saved.
        self.run_teacher = teacher and (lambda inputs: teacher(inputs, training=False))
        if task is not None:
            name = getattr(task, "loss_name", "hard_label_loss")
            self.hard_label_tracker = keras.metrics.Mean(name=name)
        names = dict.fromkeys(term.name for term in terms)
        self.trackers = {name: keras.metrics.Mean(name=f"{name}_loss") for name in names}
        self.built = True

    def call(self, inputs, training=None):
        return self.student(inputs, training=training)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        labels = y.get("labels") if isinstance(y, dict) else y
        # All parts are means over examples, so that their sum is the mean of the whole.
        count, loss = batch_rows(x), ops.zeros(())
        if self.task is not None:
            outputs = {key: pick_output(y_pred, key) for key in self.kind.reads}
            part = self.task.loss(labels, outputs, sample_weight)
            self.track(self.hard_label_tracker, part, count, training)
            # A loss of weight 0 must not reach the gradients: these would be 0 instead of None,
            # so that weights decay, and NaN where the loss is infinite.
            if self.hard_label_weight:
                loss = self.hard_label_weight * part
        if not training:
            return loss
        teacher_outputs = self._cached(x, y) if isinstance(y, dict) else self.run_teacher(x)
        step = ops.convert_to_tensor(self.optimizer.iterations) if self.compiled else 0
        batch = y_pred, _padding_mask(x), sample_weight, labels, step
        for term in self.terms:
            part = term.loss(teacher_outputs, *batch)
            self.track(self.trackers[term.name], part, count)
            if callable(term.weight) or term.weight:
                loss = loss + at_step(term.weight, step) * part
        return loss

    def _cached(self, x, y):
        """Return a batch's cached outputs in the form of a teacher's outputs."""
        mask, outputs = _padding_mask(x), {}
        by_choice = mask is not None and len(mask.shape) == 3
        for term in self.terms:
            output, index = term.teacher
            value = y[output_key(output, index)]
            if by_choice and output not in self.kind.reads:
                shape = ops.shape(value)  # (B, choices, ...), of B * choices texts
                value = ops.reshape(value, (shape[0] * shape[1], *shape[2:]))
            if index is None:
                outputs[output] = value
            else:
                outputs.setdefault(output, {})[index] = value
        return outputs


def _padding_mask(inputs):
    """Return the padding mask as float32, (B, L) or (B, choices, L); None if there is none."""
    mask = inputs.get("padding_mask") if isinstance(inputs, dict) else None
    return mask if mask is None else ops.cast(mask, "float32")
