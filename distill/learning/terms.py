"""Distillation losses: each `Term` compares a tensor of the student with one of the teacher."""

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf
from keras import ops

from tfnlp.functional.weighted_losses import entry_weights, weighted_mean
from tfnlp.text.batching.batches import IGNORED
from tfnlp.utils.errors import InputError


def pick_output(outputs, output, index=None):
    """Return one tensor of a model's outputs, by its name and, in a list, its number.

    A tensor in place of a dict is returned as it is.
    """
    if not isinstance(outputs, dict):
        return outputs
    return outputs[output] if index is None else outputs[output][index]


@dataclasses.dataclass(frozen=True)
class Term:
    """Distance of a tensor of the student from one of the teacher, as a loss.

    The loss is the mean distance over texts, real tokens or pairs of real tokens, as in
    `tfnlp.functional.weighted_losses`.

    Args:
        teacher: the teacher's tensor: the name of an output, such as "pooled_output", or (output,
            index) where it is a list, such as ("hidden_states", 3).
        student: the student's tensor, in the same form.
        distance: a function of both, in float32, and of the padding mask, to the distance of each
            text (B,), token (B, L) or pair of tokens (B, L, L), such as those of
            `distill.learning.distances`; the term takes the mean.
        weight: of the term, a number or a schedule: a function of the step, such as a
            `keras.optimizers.schedules.LearningRateSchedule`.
        temperature: the distance's `temperature`, a number above 0 or a schedule; None for a
            distance without one.
        projection: a trainable layer applied to the student's tensor first; terms may share one;
            or None.
        name: of the logged loss, "hidden_state" for `hidden_state_loss`; terms of one name are
            averaged. The name of the student's tensor where None.
        at_labels: whether only tokens with a label count.

    Raises:
        ValueError: if the weight is below 0, or the temperature not above it.
    """

    teacher: tuple | str
    student: tuple | str
    distance: Callable
    weight: float | Callable = 1.0
    temperature: float | Callable | None = None
    projection: keras.layers.Layer | None = None
    name: str | None = None
    at_labels: bool = False

    def __post_init__(self):
        for side in ("teacher", "student"):
            tensor = getattr(self, side)
            tensor = (tensor, None) if isinstance(tensor, str) else tuple(tensor)
            object.__setattr__(self, side, tensor)
        if self.name is None:
            object.__setattr__(self, "name", _tensor_name(self.student, "_"))
        numbers = (self.weight, self.temperature)
        weight, temperature = (1 if callable(x) or x is None else x for x in numbers)
        if weight < 0 or temperature <= 0:
            raise ValueError(
                f"weight={self.weight} of {self.name!r} must be at least 0, and "
                f"temperature={self.temperature} above 0."
            )

    def distances(self, teacher, student, padding_mask=None, step=0):
        """Compute the distances in float32; the student's tensor is projected here."""
        if self.projection is not None:
            student = self.projection(student)
        options = {}
        if self.temperature is not None:
            options["temperature"] = at_step(self.temperature, step)
        tensors = ops.cast(teacher, "float32"), ops.cast(student, "float32")
        return self.distance(*tensors, padding_mask, **options)

    def loss(
        self,
        teacher_outputs,
        student_outputs,
        padding_mask=None,
        sample_weight=None,
        labels=None,
        step=0,
    ):
        """Compute the mean distance without the term's weight, a scalar.

        Args:
            teacher_outputs, student_outputs: of the models.
            padding_mask: (B, L), 1 at real tokens, or (B, choices, L); all ones where None.
            sample_weight: (B,), of the examples.
            labels: of each token (B, L), -100 where it has none; others have no effect.
            step: of the training, for schedules.
        """
        teacher = pick_output(teacher_outputs, *self.teacher)
        student = pick_output(student_outputs, *self.student)
        distances = self.distances(teacher, student, padding_mask, step)
        distances, *weights = distances if isinstance(distances, tuple) else (distances,)
        if self.at_labels and labels is not None and len(distances.shape) == 2:
            # Padding has no label. The mask may not fit, as logits may cover some positions only.
            weights = [sample_weight, ops.not_equal(labels, IGNORED), *weights]
        else:
            weights = [_text_weights(distances, padding_mask, sample_weight), *weights]
        return weighted_mean(distances, *weights)


def at_step(value, step):
    """Return a number, or the value of a schedule at a step, which it gets as a float."""
    return ops.cast(value(ops.cast(step, "float32")), "float32") if callable(value) else value


def _text_weights(distances, padding_mask, sample_weight):
    """Compute the weights of distances: 0 for padding, else that of the example.

    Multiple-choice masks are (B, choices, L), and distances those of B * choices texts.
    """
    if padding_mask is None:
        return sample_weight
    if len(distances.shape) == 1:
        if sample_weight is None or len(padding_mask.shape) < 3:
            return sample_weight
        # A replica may have no examples.
        choices = ops.shape(distances)[0] // ops.maximum(ops.shape(sample_weight)[0], 1)
        weight = ops.cast(sample_weight, "float32")[:, None] * ops.ones((1, choices))
        return ops.reshape(weight, (-1,))
    length = ops.shape(padding_mask)[-1]
    weight = ops.reshape(entry_weights(padding_mask, padding_mask, sample_weight), (-1, length))
    if len(distances.shape) == 2:
        return weight
    real = ops.cast(ops.reshape(padding_mask, (-1, length)), "float32")
    return weight[:, :, None] * real[:, None, :]


def _tensor_name(tensor, between=" "):
    return between.join(str(part) for part in tensor if part is not None)


def check_terms(terms, teacher, student):
    """Raise an InputError if a term does not fit a teacher's and a student's model."""
    for term in terms:
        tensors = read_tensor(teacher, term.teacher, "teacher")
        tensors = tensors, read_tensor(student, term.student, "student")
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in tensors]
        try:
            traced = tf.function(term.distances, autograph=False).get_concrete_function(*specs)
        except Exception as e:  # a distance of the user may raise anything
            reason = str(e).strip().partition("\n")[0].rstrip(".")
            raise InputError(
                f"The term {term.name!r} cannot compare {_tensor_name(term.teacher)} of the "
                f"teacher with {_tensor_name(term.student)} of the student: {reason}."
            ) from e
        shape = tf.nest.flatten(traced.structured_outputs)[0].shape
        if shape.rank not in (None, 1, 2, 3):
            raise InputError(
                f"The distance of the term {term.name!r} has {shape.rank} axes; return a number "
                "for each text (B,), token (B, L) or pair of tokens (B, L, L), not their mean."
            )


def read_by_terms(student, terms):
    """Return the model of the outputs of a student that terms read.

    Weights of others, such as a pooler, would get no gradients.
    """
    names = {term.student[0] for term in terms} & student.output.keys()
    if not names:  # `Distiller` says that nothing is left to learn
        return student
    return keras.Model(student.input, {name: student.output[name] for name in names})


def read_tensor(model, tensor, side):
    """Return the symbolic tensor of a model that a term names.

    Args:
        model: a `keras.Model`.
        tensor: (output, index or None).
        side: "teacher" or "student", for the message.

    Raises:
        InputError: if the model lacks it.
    """
    output, index = tensor
    if not isinstance(model.output, dict):
        return model.output
    tensors = {
        name: value if isinstance(value, list | tuple) else {None: value}
        for name, value in model.output.items()
    }
    try:
        return tensors[output][index]
    except (LookupError, TypeError):
        names = (
            name if isinstance(x, dict) else f"{name} (0 to {len(x) - 1})"
            for name, x in tensors.items()
        )
        raise InputError(
            f"The terms read {_tensor_name(tensor)}, but the {side} gives {', '.join(names)}; "
            "build a single model with `hidden_states`, `attention_scores` or "
            "`attention_projections`, or leave the term out."
        ) from None
