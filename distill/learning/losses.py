"""Distillation losses on the dict outputs of `tfnlp.models`.

Each takes the teacher's and the student's outputs, and as keywords `padding_mask` (B, L), all
ones where None, and `sample_weight` (B,). It gives a scalar, a mean as in `tfnlp.losses`. All
fit `keras.distillation.DistillationLoss`.
"""

import keras
from keras import ops

from tfnlp.losses import check_classes, weighted_mean


def logits_of(outputs):
    """The logits among a model's outputs, or its one output.

    Raises:
        ValueError: for a dict without `logits`.
    """
    if not isinstance(outputs, dict):
        return outputs
    if "logits" not in outputs:
        raise ValueError(
            f"a model with the outputs {sorted(outputs)} gives no `logits`; give a student and a "
            "teacher with a classifier or a tagger as their head."
        )
    return outputs["logits"]


class SoftLabelLoss(keras.distillation.DistillationLoss):
    """Divergence of the softened class probabilities, T^2 KL(teacher || student).

    Hinton et al. 2015, 'Distilling the Knowledge in a Neural Network', section 2: logits are
    divided by the temperature T, and the loss multiplied by its square, so that its gradient
    keeps its size. Of each example, or of each real token where the logits are (B, L, C).

    Args:
        temperature: T, above 0.
    """

    def __init__(self, temperature=2.0):
        if temperature <= 0:
            raise ValueError(f"temperature={temperature} must be above 0.")
        self.temperature = temperature

    def reads(self):
        """Teacher outputs that the loss reads: a list of (output, index or None)."""
        return [("logits", None)]

    def compute_loss(
        self, teacher_outputs, student_outputs, padding_mask=None, sample_weight=None, **kwargs
    ):
        student = ops.cast(logits_of(student_outputs), "float32") / self.temperature
        check_classes(student)
        teacher = ops.cast(logits_of(teacher_outputs), "float32") / self.temperature
        log_p = ops.log_softmax(teacher)
        # (B,), or (B, L) where each token has its logits
        divergence = ops.sum(ops.exp(log_p) * (log_p - ops.log_softmax(student)), axis=-1)
        mask = padding_mask if len(divergence.shape) == 2 else None
        return self.temperature**2 * weighted_mean(divergence, mask, sample_weight)


class HiddenStateLoss(keras.distillation.DistillationLoss):
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
        # Output 0 is the embeddings', so a layer's output is one further.
        self.pairs = [(t + 1, s + 1) for s, t in enumerate(layer_map)]
        if embeddings:
            self.pairs.insert(0, (0, 0))
        self.projection = None
        if teacher_dim != student_dim:
            self.projection = keras.layers.Dense(
                teacher_dim, use_bias=False, name="hidden_state_projection"
            )
            self.projection.build((None, None, student_dim))

    def reads(self):
        """Teacher outputs that the loss reads: a list of (output, index)."""
        return [("hidden_states", t) for t, _ in self.pairs]

    def compute_loss(
        self, teacher_outputs, student_outputs, padding_mask=None, sample_weight=None, **kwargs
    ):
        losses = []
        for t, s in self.pairs:
            student = student_outputs["hidden_states"][s]  # (B, L, D')
            if self.projection is not None:
                student = self.projection(student)  # (B, L, D)
            teacher = teacher_outputs["hidden_states"][t]  # (B, L, D)
            error = _squared_error(teacher, student, axis=-1)  # (B, L)
            losses.append(weighted_mean(error, padding_mask, sample_weight))
        return sum(losses) / len(losses)


class AttentionScoreLoss(keras.distillation.DistillationLoss):
    """Mean squared difference of attention scores before the softmax, by layer map.

    Jiao et al. 2020, 'TinyBERT', eq. 7; pairs with padding are left out. Where the numbers
    of heads differ, the scores are averaged over the heads first.

    Args:
        layer_map: for each student layer the teacher's, both counted from 0.
    """

    def __init__(self, layer_map):
        self.pairs = [(t, s) for s, t in enumerate(layer_map)]

    def reads(self):
        """Teacher outputs that the loss reads: a list of (output, index)."""
        return [("attention_scores", t) for t, _ in self.pairs]

    def compute_loss(
        self, teacher_outputs, student_outputs, padding_mask=None, sample_weight=None, **kwargs
    ):
        mask = None
        if padding_mask is not None:
            mask = padding_mask[:, :, None] * padding_mask[:, None, :]  # (B, L, L)
        losses = []
        for t, s in self.pairs:
            teacher = teacher_outputs["attention_scores"][t]  # (B, N, L, L)
            student = student_outputs["attention_scores"][s]  # (B, N', L, L)
            if teacher.shape[1] != student.shape[1]:
                teacher = ops.mean(teacher, axis=1, keepdims=True)
                student = ops.mean(student, axis=1, keepdims=True)
            error = _squared_error(teacher, student, axis=1)  # (B, L, L)
            losses.append(weighted_mean(error, mask, sample_weight))
        return sum(losses) / len(losses)


def make_losses(
    layer_map,
    teacher_dim,
    student_dim,
    temperature=2.0,
    soft_label_weight=0.5,
    hidden_state_weight=0.0,
    attention_weight=0.0,
):
    """The (weight, loss) pairs whose weight is not 0, for `Distiller`."""
    pairs = []
    if soft_label_weight:
        pairs.append((soft_label_weight, SoftLabelLoss(temperature)))
    if hidden_state_weight:
        loss = HiddenStateLoss(layer_map, teacher_dim, student_dim)
        pairs.append((hidden_state_weight, loss))
    if attention_weight:
        pairs.append((attention_weight, AttentionScoreLoss(layer_map)))
    return pairs


def _squared_error(teacher, student, axis):
    """The mean over one axis of the squared differences."""
    difference = ops.cast(teacher, "float32") - ops.cast(student, "float32")
    return ops.mean(ops.square(difference), axis=axis)
