"""Distillation losses on the dict outputs of `tfnlp.models`.

What a student learns is a list of `Term`s: a tensor of the teacher, one of the student, and how
far they are apart. A function gives the terms of each method; a loss is their sum, in the form
of `keras.distillation`, and a mean as in `tfnlp.losses`.
"""

import dataclasses
import functools
from collections.abc import Callable

import keras
from keras import ops

from tfnlp.losses import check_classes, entry_weights, weighted_mean
from tfnlp.text.batches import IGNORED
from tfnlp.training.predict import TOKEN_OUTPUTS


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

    Args:
        teacher: (output, index or None) of the teacher's tensor.
        student: likewise of the student's.
        error: a function of both, in float32, and of the padding mask; gives the error of each
            text (B,), token (B, L) or pair of tokens (B, L, L).
        weight: of the term.
        projection: a layer that the student's tensor goes through first; None for none.
        at_labels: whether tokens count only where they have a label.
    """

    teacher: tuple
    student: tuple
    error: Callable
    weight: float = 1.0
    projection: keras.layers.Layer | None = None
    at_labels: bool = False

    def loss(
        self, teacher_outputs, student_outputs, padding_mask=None, sample_weight=None, labels=None
    ):
        """The weighted mean error, a scalar; arguments as `TermsLoss` takes them."""
        teacher = pick_output(teacher_outputs, *self.teacher)
        student = pick_output(student_outputs, *self.student)
        if self.projection is not None:
            student = self.projection(student)
        teacher, student = ops.cast(teacher, "float32"), ops.cast(student, "float32")
        errors = self.error(teacher, student, padding_mask)
        weights = _error_weights(errors, padding_mask, sample_weight)
        if self.at_labels and labels is not None and len(errors.shape) == 2:
            weights = (*weights, ops.not_equal(labels, IGNORED))
        return self.weight * weighted_mean(errors, *weights)


def _error_weights(errors, padding_mask, sample_weight):
    """What errors count: those of padding nothing, others as much as their example."""
    if len(errors.shape) == 1 or padding_mask is None:
        return (sample_weight,)
    length = ops.shape(padding_mask)[-1]
    # To choose from, masks are (B, choices, L), and states those of B * choices texts.
    real = ops.reshape(padding_mask, (-1, length))
    weight = ops.reshape(entry_weights(padding_mask, padding_mask, sample_weight), (-1, length))
    if len(errors.shape) == 2:
        return (weight,)
    return (weight[:, :, None] * ops.cast(real, "float32")[:, None, :],)


def class_error(teacher, student, padding_mask, temperature):
    """The divergence of softened probabilities of classes, T^2 KL(teacher || student).

    Args:
        teacher, student: logits (..., C).

    Returns:
        (...).
    """
    check_classes(student)
    return _divergence(teacher / temperature, student / temperature, temperature)


def position_error(teacher, student, padding_mask, temperature):
    """The divergence of softened probabilities of a text's positions, padding left out.

    Args:
        teacher, student: logits (B, L).

    Returns:
        (B,).
    """
    softened = []
    for logits in (teacher, student):
        logits = logits / temperature
        if padding_mask is not None:
            logits = ops.where(ops.cast(padding_mask, "bool"), logits, -1e9)
        softened.append(logits)
    return _divergence(*softened, temperature)


def _divergence(teacher, student, temperature):
    log_p = ops.log_softmax(teacher)
    divergence = ops.sum(ops.exp(log_p) * (log_p - ops.log_softmax(student)), axis=-1)
    return temperature**2 * divergence


def squared_error(teacher, student, padding_mask):
    """The mean squared difference of vectors (..., D), as (...)."""
    return ops.mean(ops.square(teacher - student), axis=-1)


def score_error(teacher, student, padding_mask):
    """The mean squared difference of attention scores (B, N, L, L) over the heads, as (B, L, L).

    Where the numbers of heads differ, the scores are averaged over the heads first.
    """
    if teacher.shape[1] != student.shape[1]:
        teacher = ops.mean(teacher, axis=1, keepdims=True)
        student = ops.mean(student, axis=1, keepdims=True)
    return ops.mean(ops.square(teacher - student), axis=1)


def soft_label_terms(task=None, temperature=2.0):
    """What the teacher answers, as a task's outputs say it.

    A divergence of classes (of texts, of each labelled token, of the texts to choose from) or of
    positions, each softened by the temperature; of a number the squared error, which has none.

    Args:
        task: see `tfnlp.tasks`; None for classes.
        temperature: T, above 0.
    """
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} must be above 0.")
    outputs = ("logits",) if task is None else task.outputs

    def error(output):
        if task is not None and task.num_classes == 1:
            return squared_error
        error = position_error if output in TOKEN_OUTPUTS else class_error
        return functools.partial(error, temperature=temperature)

    weight = 1 / len(outputs)
    return [Term((o, None), (o, None), error(o), weight, at_labels=True) for o in outputs]


def hidden_state_terms(layer_map, projection=None, embeddings=True):
    """Hidden states by layer map, each pair counting the same.

    Args:
        layer_map: for each student layer the teacher's, both counted from 0.
        projection: of the student's states to the teacher's width; None for none.
        embeddings: whether the embeddings' outputs are compared too.
    """
    # Output 0 is the embeddings', so a layer's output is one further.
    pairs = [(0, 0)] * embeddings + [(t + 1, s + 1) for s, t in enumerate(layer_map)]
    name, weight = "hidden_states", 1 / len(pairs)
    return [Term((name, t), (name, s), squared_error, weight, projection) for t, s in pairs]


def attention_score_terms(layer_map):
    """Attention scores by layer map, as `hidden_state_terms`."""
    name, weight = "attention_scores", 1 / len(layer_map)
    return [Term((name, t), (name, s), score_error, weight) for s, t in enumerate(layer_map)]


class TermsLoss(keras.distillation.DistillationLoss):
    """The sum of terms, as one loss for `keras.distillation` and for `Distiller`.

    Args:
        terms: a list of `Term`.
    """

    def __init__(self, terms):
        self.terms = terms

    def reads(self):
        """Teacher outputs that the loss reads: a list of (output, index or None)."""
        return [term.teacher for term in self.terms]

    def compute_loss(
        self,
        teacher_outputs,
        student_outputs,
        padding_mask=None,
        sample_weight=None,
        labels=None,
        **kwargs,
    ):
        """The loss of a batch, a scalar.

        Args:
            teacher_outputs, student_outputs: what both models give.
            padding_mask: (B, L), 1 at real tokens, or (B, choices, L); all ones where None.
            sample_weight: (B,), of the examples.
            labels: of each token (B, L), -100 where it has none; others have no effect.
        """
        arguments = (teacher_outputs, student_outputs, padding_mask, sample_weight, labels)
        return sum(term.loss(*arguments) for term in self.terms)


class SoftLabelLoss(TermsLoss):
    """Divergence of the softened class probabilities, T^2 KL(teacher || student).

    Hinton et al. 2015, 'Distilling the Knowledge in a Neural Network', section 2: logits are
    divided by the temperature T, and the loss multiplied by its square, so that its gradient
    keeps its size. Of each example; of each token that has a label where the logits are
    (B, L, C); for other tasks see `soft_label_terms`.

    Args:
        temperature: T, above 0.
        task: see `tfnlp.tasks`; None for classes.
    """

    def __init__(self, temperature=2.0, task=None):
        super().__init__(soft_label_terms(task, temperature))
        self.temperature = temperature


class HiddenStateLoss(TermsLoss):
    """Mean squared difference of hidden states at real tokens, by layer map.

    Jiao et al. 2020, 'TinyBERT', eq. 8 and 9: MSE(H^S W_h, H^T), with a learned W_h where
    the widths differ; also on the embeddings.

    Args:
        layer_map: for each student layer the teacher's, both counted from 0.
        teacher_dim: the teacher's width.
        student_dim: the student's width; where it differs, one projection without bias is
            learned, shared by all layers as in the paper.
        embeddings: whether the embeddings' outputs are compared too.
    """

    def __init__(self, layer_map, teacher_dim, student_dim, embeddings=True):
        self.projection = None
        if teacher_dim != student_dim:
            self.projection = keras.layers.Dense(
                teacher_dim, use_bias=False, name="hidden_state_projection"
            )
            self.projection.build((None, None, student_dim))
        super().__init__(hidden_state_terms(layer_map, self.projection, embeddings))


class AttentionScoreLoss(TermsLoss):
    """Mean squared difference of attention scores before the softmax, by layer map.

    Jiao et al. 2020, 'TinyBERT', eq. 7; pairs with padding are left out. Where the numbers
    of heads differ, the scores are averaged over the heads first.

    Args:
        layer_map: for each student layer the teacher's, both counted from 0.
    """

    def __init__(self, layer_map):
        super().__init__(attention_score_terms(layer_map))


def make_losses(
    layer_map,
    teacher_dim,
    student_dim,
    temperature=2.0,
    soft_label_weight=0.5,
    hidden_state_weight=0.0,
    attention_weight=0.0,
    task=None,
):
    """The (weight, loss) pairs whose weight is not 0, for `Distiller`.

    Args:
        layer_map: for each student layer the teacher's, both counted from 0.
        teacher_dim, student_dim: the widths of both.
        temperature: of the soft labels.
        soft_label_weight, hidden_state_weight, attention_weight: of the losses.
        task: whose outputs the soft labels are; None for classes.
    """
    pairs = []
    if soft_label_weight:
        pairs.append((soft_label_weight, SoftLabelLoss(temperature, task)))
    if hidden_state_weight:
        loss = HiddenStateLoss(layer_map, teacher_dim, student_dim)
        pairs.append((hidden_state_weight, loss))
    if attention_weight:
        pairs.append((attention_weight, AttentionScoreLoss(layer_map)))
    return pairs
