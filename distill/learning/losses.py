"""What a student learns: a list of `Term`s, and the loss that is their sum."""

import dataclasses
import functools
from collections.abc import Callable

import keras
import tensorflow as tf
from keras import ops

from tfnlp.errors import InputError
from tfnlp.losses import entry_weights, weighted_mean
from tfnlp.text.batches import IGNORED

# Outputs that `build_model` gives on request, and the argument that asks for them.
ASKED_FOR = {
    "hidden_states": "hidden_states",
    "attention_scores": "attention_scores",
    "queries": "attention_projections",
    "keys": "attention_projections",
    "values": "attention_projections",
}


def pick_output(outputs, output, index=None):
    """One tensor of a model's outputs, or of a model of one tensor that tensor.

    Args:
        outputs: what a model gives; tensors, or symbolic ones.
        output: its name.
        index: its number, where the output is a list.

    Raises:
        ValueError: for a dict without it.
    """
    if not isinstance(outputs, dict):
        return outputs
    if output not in outputs:
        raise ValueError(
            f"a model with the outputs {sorted(outputs)} gives no `{output}`; give a student and "
            "a teacher that both do."
        )
    return outputs[output] if index is None else outputs[output][index]


@dataclasses.dataclass(frozen=True)
class Term:
    """A tensor of the student that learns from one of the teacher.

    Its loss is the mean error over texts, real tokens or pairs of real tokens, as in
    `tfnlp.losses`.

    Args:
        teacher: the teacher's tensor: the name of an output, such as "pooled_output", or
            (output, index) where it is a list, such as ("hidden_states", 3).
        student: likewise the student's.
        error: a function of both, in float32, and of the padding mask, that gives the error of
            each text (B,), token (B, L) or pair of tokens (B, L, L), such as those of
            `distill.learning.errors`; the term takes the mean.
        weight: of the term, a number or a schedule: a function of the step, such as a
            `keras.optimizers.schedules.LearningRateSchedule`.
        temperature: what the error takes as `temperature`, a number above 0 or a schedule; None
            for an error that takes none.
        projection: a layer that the student's tensor goes through first, which is learned; terms
            may share one; None for none.
        name: by which its loss is shown, "hidden_state" as `hidden_state_loss`; terms of one name
            as their mean. That of the student's tensor where None.
        at_labels: whether tokens count only where they have a label.

    Raises:
        ValueError: for a temperature that is not above 0, and a weight below 0.
    """

    teacher: tuple | str
    student: tuple | str
    error: Callable
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
        if isinstance(self.temperature, int | float) and self.temperature <= 0:
            raise ValueError(f"temperature={self.temperature} must be above 0.")
        if isinstance(self.weight, int | float) and self.weight < 0:
            raise ValueError(f"weight={self.weight} of {self.name!r} must be at least 0.")

    def errors(self, teacher, student, padding_mask=None, step=None):
        """The errors of both tensors, the student's not yet projected, float32."""
        if self.projection is not None:
            student = self.projection(student)
        teacher, student = ops.cast(teacher, "float32"), ops.cast(student, "float32")
        options = {}
        if self.temperature is not None:
            options["temperature"] = at_step(self.temperature, step)
        return self.error(teacher, student, padding_mask, **options)

    def loss(
        self,
        teacher_outputs,
        student_outputs,
        padding_mask=None,
        sample_weight=None,
        labels=None,
        step=None,
    ):
        """The mean error without the term's weight, a scalar.

        Args:
            teacher_outputs, student_outputs: what both models give.
            padding_mask: (B, L), 1 at real tokens, or (B, choices, L); all ones where None.
            sample_weight: (B,), of the examples.
            labels: of each token (B, L), -100 where it has none; others have no effect.
            step: of the training, for schedules.

        Raises:
            ValueError: for models without the tensors, tensors that the error does not fit, and
                a schedule without a step.
        """
        teacher = pick_output(teacher_outputs, *self.teacher)
        student = pick_output(student_outputs, *self.student)
        found = self.errors(teacher, student, padding_mask, step)
        errors, *own = found if isinstance(found, tuple) else (found,)
        if self.at_labels and labels is not None and len(errors.shape) == 2:
            # Padding has no label. Logits may be of some positions, not of all tokens.
            weights = (sample_weight, ops.not_equal(labels, IGNORED))
        else:
            weights = _error_weights(errors, padding_mask, sample_weight)
        return weighted_mean(errors, *weights, *own)


def at_step(value, step):
    """A number, or what a schedule says at a step, which it is told as a float.

    Raises:
        ValueError: for a schedule without a step.
    """
    if not callable(value):
        return value
    if step is None:
        raise ValueError("a weight or a temperature follows a schedule, which needs the step.")
    return ops.cast(value(ops.cast(step, "float32")), "float32")


def times(weight, factor):
    """A weight, be it a schedule, multiplied by a number."""
    if callable(weight):
        return lambda step: weight(step) * factor
    return weight * factor


def _error_weights(errors, padding_mask, sample_weight):
    """What errors count: those of padding nothing, others as much as their example."""
    by_text = len(errors.shape) == 1
    if padding_mask is None or (
        by_text and (sample_weight is None or len(padding_mask.shape) < 3)
    ):
        return (sample_weight,)
    if by_text:  # of examples, or of their texts to choose from; a replica may have none
        texts_each = ops.shape(errors)[0] // ops.maximum(ops.shape(sample_weight)[0], 1)
        weight = ops.cast(sample_weight, "float32")[:, None] * ops.ones((1, texts_each))
        return (ops.reshape(weight, (-1,)),)
    length = ops.shape(padding_mask)[-1]
    # To choose from, masks are (B, choices, L), and states those of B * choices texts.
    real = ops.reshape(padding_mask, (-1, length))
    weight = ops.reshape(entry_weights(padding_mask, padding_mask, sample_weight), (-1, length))
    if len(errors.shape) == 2:
        return (weight,)
    return (weight[:, :, None] * ops.cast(real, "float32")[:, None, :],)


def _tensor_name(tensor, between=" "):
    return between.join(str(part) for part in tensor if part is not None)


class TermsLoss(keras.distillation.DistillationLoss):
    """The weighted sum of terms as one loss of `keras.distillation`.

    Args:
        terms: a list of `Term`, without schedules where Keras' own `Distiller` sums them, which
            does not tell the step.
    """

    def __init__(self, terms):
        self.terms = terms

    def compute_loss(
        self,
        teacher_outputs,
        student_outputs,
        padding_mask=None,
        sample_weight=None,
        labels=None,
        step=None,
        **kwargs,
    ):
        """The loss of a batch, a scalar; arguments as `Term.loss` takes them."""
        batch = teacher_outputs, student_outputs, padding_mask, sample_weight, labels, step
        return sum(at_step(term.weight, step) * term.loss(*batch) for term in self.terms)


def check_terms(terms, teacher, student):
    """Raises an InputError for a term that the models do not go with, in one sentence.

    Args:
        terms: a list of `Term`.
        teacher, student: the models; where the teacher is None its tensors are not looked at.
    """
    for term in terms:
        models = {"teacher": teacher, "student": student}
        read = [
            read_tensor(model, getattr(term, side), side)
            for side, model in models.items()
            if model is not None
        ]
        if teacher is None:
            continue
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in read]
        compare = functools.partial(term.errors, step=0)
        try:
            traced = tf.function(compare, autograph=False).get_concrete_function(*specs)
        except Exception as e:  # whatever an error of the user's own raises
            reason = str(e).strip().partition("\n")[0].rstrip(".")
            raise InputError(
                f"The term {term.name!r} cannot compare {_tensor_name(term.teacher)} of the "
                f"teacher with {_tensor_name(term.student)} of the student: {reason}."
            ) from e
        found = tf.nest.flatten(traced.structured_outputs)[0].shape
        if found.rank not in (None, 1, 2, 3):
            raise InputError(
                f"The error of the term {term.name!r} gives {found.rank} axes; let it give a "
                "number for each text (B,), token (B, L) or pair of tokens (B, L, L), not their "
                "mean."
            )


def read_tensor(model, tensor, side):
    """The symbolic tensor of a model that a term names, (output, index or None).

    Raises:
        InputError: for a model, the "teacher" or the "student" as `side` says, without it.
    """
    (output, index), found = tensor, model.output
    if not isinstance(found, dict):
        return found
    outputs, found = found, found.get(output)
    if isinstance(found, list | tuple) and index is not None:
        if -len(found) <= index < len(found):
            return found[index]
    elif found is not None and index is None and not isinstance(found, list | tuple):
        return found
    advice = f"its outputs are {', '.join(outputs)}"
    if found is None and output in ASKED_FOR:
        advice = f"build it with {ASKED_FOR[output]}=True"
    elif isinstance(found, list | tuple):
        advice = f"its {output} are numbered 0 to {len(found) - 1}"
    raise InputError(
        f"The terms read {_tensor_name(tensor)}, which the {side} does not give; {advice}."
    )
