"""Ensembles of teachers: several models that are called and read like one."""

import dataclasses

import keras
import numpy as np
from keras import ops

from tfnlp.functional.links import LINKS
from tfnlp.utils.errors import InputError


class Ensemble:
    """Several teachers of a task, called like one model.

    Outputs are stacked, (B, teachers, ...). Soft labels of an ensemble are the mean of its
    probabilities, each at the temperature, or the mean of its numbers. Hinton et al. 2015,
    'Distilling the Knowledge in a Neural Network', section 2, uses ensembles as teachers.

    Args:
        models: the teachers, with the task's head and labels.
        task: see `tfnlp.tasks`.
        shares: the weight of each teacher in the mean, from `teacher_shares`.
        pooled: whether to return the mean, in the form of one model's outputs.
    """

    def __init__(self, models, task, shares, pooled=False):
        self.models, self.task, self.shares, self.pooled = list(models), task, shares, pooled
        self.head = task.kind.head
        self.input = self.models[0].input
        teachers = () if pooled else (len(self.models),)
        self.output = {
            name: keras.KerasTensor((x.shape[0], *teachers, *x.shape[1:]), "float32")
            for name, x in self.models[0].output.items()
            if name in task.kind.reads
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
            for name in self.task.kind.reads
        }
        if not self.pooled:
            return stacked
        mask = inputs["padding_mask"]
        return {name: self.mean(x, mask) for name, x in stacked.items()}

    def mean(self, x, padding_mask, temperature=1.0):
        """Return the mean of the teachers' numbers, or logits of their mean probabilities.

        Args:
            x: (B, teachers, ...).
            padding_mask: (B, L); positions of padding have no probability.
            temperature: divisor of the logits, and factor of the returned ones.

        Returns:
            (B, ...).
        """
        shape = (-1, *[1] * (len(x.shape) - 2))
        shares = ops.reshape(ops.convert_to_tensor(self.shares, x.dtype), shape)
        link, mask = LINKS[self.task.kind.link], padding_mask
        x = link.without_padding(x, None if mask is None else mask[:, None])
        return link.mean(x, shares, temperature)

    def of_mean(self, term):
        """Return a term for stacked outputs whose distance is that from their mean."""

        def distance(teacher, student, padding_mask, **options):
            teacher = self.mean(teacher, padding_mask, **options)
            return term.distance(teacher, student, padding_mask, **options)

        return dataclasses.replace(term, distance=distance)


def teacher_shares(weights, count):
    """Return the weights of several teachers as a tuple whose sum is 1; all alike for None.

    Raises:
        InputError: unless there are two teachers or more, with a weight of 0 or more for each, and
            one above 0.
    """
    if weights is None:
        return (1 / count,) * count
    total = np.sum(weights)
    if len(weights) != count or count < 2 or min(weights) < 0 or not 0 < total < np.inf:
        raise InputError(
            f"teacher_weights={','.join(map(str, weights))} must be a number of 0 or more for "
            f"each of several teachers, here {count}, and one of them above 0."
        )
    return tuple(float(weight / total) for weight in weights)
