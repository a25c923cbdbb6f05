"""Ensembles of teachers: several models that are called and read like one."""

import keras
import numpy as np
from keras import ops

from distill.learning.distances import HIDDEN, POSITION_LOGITS, mean_log_probability, mean_number
from tfnlp.utils.errors import InputError


class Ensemble:
    """Several teachers of a task, called like one model.

    Outputs are stacked, (B, teachers, ...).

    Soft labels of an ensemble are the mean of its probabilities, each at the temperature, or the
    mean of its numbers. Hinton et al. 2015, 'Distilling the Knowledge in a Neural Network',
    section 2, uses ensembles as teachers.

    Args:
        models: the teachers, with the task's head and labels.
        task: see `tfnlp.tasks`.
        pooled: whether to return the mean, in the form of one model's outputs.
        weights: of each in that mean, from `teacher_shares`; all alike where None.
    """

    def __init__(self, models, task, pooled=False, weights=None):
        self.models = list(models)
        self.task = task
        self.pooled = pooled
        self.shares = weights
        self.head = task.head
        self.input = self.models[0].input
        teachers = () if pooled else (len(self.models),)
        self.output = {
            name: keras.KerasTensor((x.shape[0], *teachers, *x.shape[1:]), "float32")
            for name, x in self.models[0].output.items()
            if name in task.outputs
        }
        self.text_config = [model.text_config for model in self.models]
        self.layers = [layer for model in self.models for layer in model.layers]
        self.weights = [weight for model in self.models for weight in model.weights]

    def _flatten_layers(self):
        return [layer for model in self.models for layer in model._flatten_layers()]

    def __call__(self, inputs, training=False):
        outputs = [model(inputs, training=training) for model in self.models]
        stacked = {
            name: ops.stack([ops.cast(output[name], "float32") for output in outputs], axis=1)
            for name in self.task.outputs
        }
        if not self.pooled:
            return stacked
        return {name: self._pool(name, x, inputs["padding_mask"]) for name, x in stacked.items()}

    def _pool(self, name, x, padding_mask):
        if self.task.num_classes == 1:
            return mean_number(x, self.shares)
        if name in POSITION_LOGITS:
            x = ops.where(ops.cast(padding_mask, "bool")[:, None], x, HIDDEN)
        return mean_log_probability(x, self.shares)


def teacher_shares(weights, count):
    """Return the weights of several teachers, normalised to a sum of 1, as a tuple; None for None.

    Raises:
        InputError: unless there are two teachers or more, with a weight of 0 or more for each, and
            one above 0.
    """
    if weights is None:
        return None
    shown = ",".join(map(str, weights))
    if count < 2 or len(weights) != count:
        raise InputError(
            f"teacher_weights={shown} are {len(weights)} weights, but there "
            f"{'is one teacher' if count == 1 else f'are {count} teachers'}; give one for each of "
            "several."
        )
    if not (np.isfinite(weights).all() and min(weights) >= 0 and max(weights) > 0):
        raise InputError(f"teacher_weights={shown} must be 0 or more, and one of them above 0.")
    return tuple(float(weight) / sum(weights) for weight in weights)
