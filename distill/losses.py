"""Distillation losses on the dict outputs of `tfnlp.models`.

Each takes the teacher's and the student's outputs and the padding mask (B, L), and gives a
scalar. All fit `keras.distillation.DistillationLoss`.
"""

import math

import keras
from keras import ops


class SoftLabelLoss(keras.distillation.DistillationLoss):
    """Divergence of the softened class probabilities, T^2 KL(teacher || student).

    Hinton et al. 2015, 'Distilling the Knowledge in a Neural Network', section 2: logits are
    divided by the temperature T, and the loss multiplied by its square, so that its gradient
    keeps its size.

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

    def compute_loss(self, teacher_outputs, student_outputs, **kwargs):
        teacher = ops.cast(teacher_outputs["logits"], "float32") / self.temperature
        student = ops.cast(student_outputs["logits"], "float32") / self.temperature
        log_p = ops.log_softmax(teacher)
        divergence = ops.sum(ops.exp(log_p) * (log_p - ops.log_softmax(student)), axis=-1)
        # Under a strategy a device's share of the last batch can be empty: 0 then, not NaN.
        examples = ops.maximum(ops.cast(ops.shape(divergence)[0], "float32"), 1.0)
        return self.temperature**2 * ops.sum(divergence) / examples


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

    def compute_loss(self, teacher_outputs, student_outputs, padding_mask=None, **kwargs):
        losses = []
        for t, s in self.pairs:
            student = student_outputs["hidden_states"][s]  # (B, L, D')
            if self.projection is not None:
                student = self.projection(student)  # (B, L, D)
            teacher = teacher_outputs["hidden_states"][t]  # (B, L, D)
            losses.append(_masked_mse(teacher, student, padding_mask[:, :, None]))
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

    def compute_loss(self, teacher_outputs, student_outputs, padding_mask=None, **kwargs):
        mask = padding_mask[:, None, :, None] * padding_mask[:, None, None, :]  # (B, 1, L, L)
        losses = []
        for t, s in self.pairs:
            teacher = teacher_outputs["attention_scores"][t]  # (B, N, L, L)
            student = student_outputs["attention_scores"][s]  # (B, N', L, L)
            if teacher.shape[1] != student.shape[1]:
                teacher = ops.mean(teacher, axis=1, keepdims=True)
                student = ops.mean(student, axis=1, keepdims=True)
            losses.append(_masked_mse(teacher, student, mask))
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
    """The (weight, loss) pairs whose weight is not 0, for `distill.distiller.Distiller`."""
    pairs = []
    if soft_label_weight:
        pairs.append((soft_label_weight, SoftLabelLoss(temperature)))
    if hidden_state_weight:
        loss = HiddenStateLoss(layer_map, teacher_dim, student_dim)
        pairs.append((hidden_state_weight, loss))
    if attention_weight:
        pairs.append((attention_weight, AttentionScoreLoss(layer_map)))
    return pairs


def _masked_mse(teacher, student, mask):
    """Mean of the squared differences where `mask`, with axes of size 1 to broadcast, is 1."""
    mask = ops.cast(mask, "float32")
    difference = ops.cast(teacher, "float32") - ops.cast(student, "float32")
    # Each position counts for all the values that the mask is broadcast over.
    axes = [i for i, size in enumerate(mask.shape) if size == 1]
    values = math.prod(difference.shape[i] for i in axes)
    return ops.sum(ops.square(difference) * mask) / ops.maximum(ops.sum(mask) * values, 1.0)
