"""Loading of fine-tuned teachers, and ensembles of them."""

import dataclasses
import functools

import keras
import numpy as np
from keras import ops

from distill.learning.distances import HIDDEN, POSITION_LOGITS, mean_log_probability, mean_number
from tfnlp.checkpoints import load_model, read_head, read_labels
from tfnlp.text import load_tokenizer
from tfnlp.utils.errors import InputError


def read_teacher_labels(folder, head):
    """Return the class names of a teacher's folder in order of their ids, or None if it has none.

    Args:
        folder: of the model.
        head: one of `tfnlp.models.HEADS` that classifies.

    Raises:
        InputError: if its model has another head, or is a regression.
    """
    _check_head(folder, head)
    labels = read_labels(folder)
    if labels and len(labels) == 1:
        raise InputError(
            f"{folder} holds a {head} that gives a number, not one of several classes; give the "
            "folder of a teacher that was fine-tuned for the task."
        )
    return labels


def _check_head(folder, head):
    stored = read_head(folder)
    if stored != head:
        held = f"a model with the head {stored!r}" if stored else "an encoder without a head"
        raise InputError(
            f"{folder} holds {held}, but the task needs the head {head!r}; give the folder of a "
            "teacher that was fine-tuned for the task."
        )


def read_teachers_tokenizer(folders):
    """Load the tokenizer of a task's teachers, which must all have the same one.

    Args:
        folders: of the teachers.

    Raises:
        InputError: as `load_tokenizer`, and if one differs from the first.
    """
    first, *others = folders
    tokenizer = load_tokenizer(first)
    for folder in others:
        if load_tokenizer(folder).to_json() != tokenizer.to_json():
            raise InputError(
                f"{folder} has another tokenizer than {first}, but several teachers read the same "
                "tokens; give teachers of one tokenizer."
            )
    return tokenizer


def load_teacher(
    folder,
    task,
    hidden_states=False,
    attention_scores=False,
    attention_projections=False,
    dtype=None,
):
    """Load a model that was fine-tuned for a task.

    Args:
        folder: of the model, such as the `best` of a run.
        task: see `tfnlp.tasks`.
        hidden_states, attention_scores, attention_projections: whether to output these too, for
            the student to learn from.
        dtype: a Keras dtype policy for the teacher, such as "bfloat16", which takes half the
            memory; the global one where None. Losses convert its outputs to float32. A student
            that starts from its weights needs a teacher in float32.

    Returns:
        A `TextModel`.

    Raises:
        InputError: as `load_model`, and if the model has another head or other labels than the
            task.
    """
    _check_head(folder, task.head)
    teacher = load_model(
        folder,
        task.head,
        hidden_states=hidden_states,
        attention_scores=attention_scores,
        attention_projections=attention_projections,
        dtype=dtype,
    )
    if task.num_classes is None:
        return teacher
    classes = teacher.output["logits"].shape[-1]
    if classes != task.num_classes:
        raise InputError(
            f"{folder} gives {_counted(classes)}, but the task has "
            f"{_counted(task.num_classes)}; give a teacher that was fine-tuned for the task."
        )
    labels = read_labels(folder)
    # Default labels of a model whose classes have no names.
    unnamed = [f"LABEL_{i}" for i in range(classes)]
    if classes > 1 and labels not in (None, unnamed, list(task.label_names)):
        raise InputError(
            f"The labels of {folder} are {', '.join(labels)}, but the task's are "
            f"{', '.join(task.label_names)}; give the task the teacher's, in their order."
        )
    return teacher


def _counted(classes):
    return "a number" if classes == 1 else f"{classes} classes"


class SeveralTeachers:
    """Ensemble of several teachers of a task, called like one model.

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
        several = () if pooled else (len(self.models),)
        self.output = {
            name: keras.KerasTensor((x.shape[0], *several, *x.shape[1:]), "float32")
            for name, x in self.models[0].output.items()
            if name in task.outputs
        }
        self.text_config = [model.text_config for model in self.models]
        self.layers = [layer for model in self.models for layer in model.layers]
        self.weights = [weight for model in self.models for weight in model.weights]

    def _flatten_layers(self):
        return [layer for model in self.models for layer in model._flatten_layers()]

    def __call__(self, inputs, training=False):
        found = [model(inputs, training=training) for model in self.models]
        stacked = {
            name: ops.stack([ops.cast(answers[name], "float32") for answers in found], axis=1)
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


def weighted_terms(terms, shares):
    """Return terms whose errors weight several teachers by `teacher_shares`."""
    if shares is None:
        return terms
    return [
        dataclasses.replace(term, error=functools.partial(term.error, teacher_weights=shares))
        for term in terms
    ]


def join_teachers(teachers, task, terms):
    """Return an ensemble of several teachers, or a single teacher unchanged.

    Raises:
        InputError: if there is no teacher, or a term of several teachers reads layers, which
            cannot be averaged.
    """
    if not teachers:
        raise InputError("There is no teacher; give one, or several in a list.")
    if len(teachers) == 1:
        return teachers[0]
    for term in terms:
        if term.teacher[0] not in task.outputs:
            raise InputError(
                f"The term {term.name!r} reads {term.teacher[0]}, but of several teachers only "
                f"their {' and '.join(task.outputs)} are learned; leave the term out, or give one "
                "teacher."
            )
    return SeveralTeachers(teachers, task)
