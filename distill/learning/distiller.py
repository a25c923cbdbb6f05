"""The model that is fitted to distil: a student, its teacher's outputs, and their losses."""

import keras
from keras import ops

from distill.learning.losses import at_step, check_terms, pick_output
from distill.learning.teacher_outputs import output_key
from tfnlp.errors import InputError
from tfnlp.losses import whole
from tfnlp.training.strategy import CompressedSteps, UnequalShares


class Distiller(CompressedSteps, UnequalShares, keras.Model):
    """A student with its task's loss and the terms by which it learns from its teacher.

    The loss is `hard_label_weight * task.loss(labels, outputs) + sum of weight * loss of each
    term` in training; each is also shown without its weight: `hard_label_loss`, and
    `soft_label_loss` and so on by the names of the terms. Evaluation gives `hard_label_loss`
    alone. `predict` gives the task's outputs: a tensor where it has one, else a dict. The student
    stays an ordinary model: save it, not the distiller.

    Args:
        student: a `keras.Model` with the outputs that the task and the terms read.
        task: see `tfnlp.tasks`; its loss is that of the hard labels. None without labels.
        terms: a list of `distill.learning.Term`, such as a function of
            `distill.learning.METHODS` gives it. Their schedules go by the optimizer's steps.
        teacher: a `keras.Model` with the outputs that the terms compare, run once on each
            batch; None if the batches bring the outputs (`distill.learning.teacher_outputs`).
        hard_label_weight: of the task's loss.

    Batches are (inputs, labels) where there is a teacher, or (inputs,) without a task, else
    (inputs, dict of the cached outputs and, with a task, `labels`); then `sample_weight` where
    examples are to count more or less, in every loss.

    Raises:
        InputError: where no loss is left, and for terms that the models do not go with.
        ValueError: at the first batch, for a model without the task's outputs.
    """

    task_loss = "hard_label_loss"

    def __init__(self, student, task, terms, teacher=None, hard_label_weight=0.5, **kwargs):
        super().__init__(**kwargs)
        if not terms and not hard_label_weight:
            raise InputError(
                f"terms={terms!r} and hard_label_weight={hard_label_weight} leave nothing to "
                "learn; give a term or a weight above 0."
            )
        check_terms(terms, teacher, student)
        self.student = student
        self.task = task
        self.terms = terms
        self.hard_label_weight = hard_label_weight
        # Layers that the terms learn, each once, tracked as the distiller's own.
        projections = {id(term.projection): term.projection for term in terms if term.projection}
        self.projections = list(projections.values())
        # In a closure the teacher is not tracked: neither trained nor saved.
        self.run_teacher = teacher and (lambda inputs: teacher(inputs, training=False))
        if task is not None:
            name = getattr(task, "loss_name", "hard_label_loss")
            self.hard_label_tracker = keras.metrics.Mean(name=name)
        names = dict.fromkeys(term.name for term in terms)
        self.trackers = {name: keras.metrics.Mean(name=f"{name}_loss") for name in names}
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
        labels = y.get("labels") if isinstance(y, dict) else y
        count, loss = ops.shape(keras.tree.flatten(x)[0])[0], ops.zeros(())
        if self.task is not None:
            part = self.task.loss(labels, self._task_outputs(y_pred), sample_weight)
            self.hard_label_tracker.update_state(whole(part), sample_weight=count)
            # A loss that is shown alone must not reach the gradients: of 0 times it they are 0
            # where there should be none, so that weights decay, and NaN of one that is infinite.
            if self.hard_label_weight:
                loss = self.hard_label_weight * part
        if not training:
            return loss
        teacher_outputs = self._cached(x, y) if isinstance(y, dict) else self.run_teacher(x)
        step = ops.convert_to_tensor(self.optimizer.iterations) if self.compiled else 0
        for term in self.terms:
            part = term.loss(
                teacher_outputs, y_pred, _padding_mask(x), sample_weight, labels, step
            )
            self.trackers[term.name].update_state(whole(part), sample_weight=count)
            if callable(term.weight) or term.weight:
                loss = loss + at_step(term.weight, step) * part
        return loss

    def _task_outputs(self, outputs):
        return {key: pick_output(outputs, key) for key in self.task.outputs}

    def _cached(self, x, y):
        """A batch's cached outputs in the form that a teacher gives them."""
        mask, outputs = _padding_mask(x), {}
        by_choice = mask is not None and len(mask.shape) == 3
        for term in self.terms:
            output, index = term.teacher
            value = y[output_key(output, index)]
            if by_choice and output not in self.task.outputs:
                shape = ops.shape(value)  # (B, choices, ...), of B * choices texts
                value = ops.reshape(value, (shape[0] * shape[1], *shape[2:]))
            if index is None:
                outputs[output] = value
            else:
                outputs.setdefault(output, {})[index] = value
        return outputs


def _padding_mask(inputs):
    """(B, L) float32, or (B, choices, L); None where the inputs have none."""
    mask = inputs.get("padding_mask") if isinstance(inputs, dict) else None
    return mask if mask is None else ops.cast(mask, "float32")
