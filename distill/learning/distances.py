"""Errors between tensors of a teacher and a student, for a `Term`.

Each function takes both tensors, in float32, and the padding mask: (B, L), or (B, choices, L)
beside tensors of B * choices texts; None for no padding. It returns the error of each text (B,),
token (B, L) or pair of tokens (B, L, L), or a pair of errors and their weights. Errors of softened
logits take a `temperature` too. Several teachers add an axis: (B, teachers, ...). Their
probabilities or numbers are averaged by `teacher_weights`, a tuple whose sum is 1; all teachers
count the same where it is None.
"""

import numpy as np
from keras import ops

from tfnlp.functional.attention_heads import join_heads, scaled, split_heads
from tfnlp.layers import LastState
from tfnlp.weighted_losses import check_classes

HIDDEN = -1e9
# Logits over the positions of a text.
POSITION_LOGITS = ("start_logits", "end_logits")


def class_error(teacher, student, padding_mask, temperature, teacher_weights=None):
    """Compute the divergence of softened class probabilities, T^2 KL(teacher || student).

    Hinton et al. 2015, 'Distilling the Knowledge in a Neural Network', section 2. Logits are
    divided by the temperature T. The loss is multiplied by T^2, so that its gradient keeps its
    size.

    Args:
        teacher, student: logits (..., C).

    Returns:
        (...).
    """
    check_classes(student)
    _check_width(teacher, student)
    return _softened_divergence(teacher, student, temperature, teacher_weights)


def position_error(teacher, student, padding_mask, temperature, teacher_weights=None):
    """Compute `class_error` over the positions of a text, without padding.

    Args:
        teacher, student: logits (B, L).

    Returns:
        (B,).
    """
    if padding_mask is not None:
        real = ops.cast(padding_mask, "bool")
        of_teachers = real[:, None] if len(teacher.shape) > len(student.shape) else real
        teacher = ops.where(of_teachers, teacher, HIDDEN)
        student = ops.where(real, student, HIDDEN)
    return _softened_divergence(teacher, student, temperature, teacher_weights)


def squared_error(teacher, student, padding_mask, teacher_weights=None):
    """Compute the mean squared difference of vectors (..., D), as (...)."""
    _check_width(teacher, student)
    if len(teacher.shape) > len(student.shape):
        teacher = mean_number(teacher, teacher_weights)
    return ops.mean(ops.square(teacher - student), axis=-1)


def cosine_error(teacher, student, padding_mask):
    """Compute one minus the cosine similarity of vectors (..., D), as (...)."""
    _check_width(teacher, student)
    return 1 - ops.sum(_normalized(teacher) * _normalized(student), axis=-1)


def score_error(teacher, student, padding_mask, causal=False):
    """Compute the mean squared difference of attention scores (B, N, L, L) over heads, (B, L, L).

    If the numbers of heads differ, the scores are first averaged over the heads. If `causal` is
    true, keys after the query have weight 0.
    """
    if teacher.shape[1] != student.shape[1]:
        teacher = ops.mean(teacher, axis=1, keepdims=True)
        student = ops.mean(student, axis=1, keepdims=True)
    errors = ops.mean(ops.square(teacher - student), axis=1)
    if not causal:
        return errors
    return errors, ops.tril(ops.ones_like(errors))


def attention_error(teacher, student, padding_mask, causal=False):
    """Compute the divergence of attention, KL(teacher || student), averaged over the heads.

    Wang et al. 2020, 'MiniLM', eq. 3.

    Args:
        teacher, student: scores (B, N, L, L) before the softmax, with the same number of heads.
        causal: whether later keys are masked.

    Returns:
        (B, L), for each query; padding keys are masked.

    Raises:
        ValueError: if the numbers of heads differ.
    """
    heads = teacher.shape[1], student.shape[1]
    if heads[0] != heads[1]:
        raise ValueError(
            f"the teacher has {heads[0]} heads and the student {heads[1]}; give the student as "
            "many, or take minilm_v2, which splits both into `relation_heads`"
        )
    if padding_mask is not None or causal:
        seen = _seen_keys(padding_mask, ops.shape(teacher)[-1], causal)
        teacher, student = (ops.where(seen, scores, HIDDEN) for scores in (teacher, student))
    return ops.mean(_divergence(teacher, student), axis=1)


def relation_error(teacher, student, padding_mask, relation_heads=None, causal=False):
    """Compute `attention_error` of the relations of a tensor with itself, X X^T / sqrt(H).

    Wang et al. 2020, 'MiniLM', eq. 4 and 5, for values; Wang et al. 2021, 'MiniLMv2', section 3,
    for queries, keys or values, whose heads are joined and split again.

    Args:
        teacher, student: queries, keys or values (B, N, L, H).
        relation_heads: the number of heads to split both into; unchanged where None.
        causal: whether later keys are masked.

    Returns:
        (B, L).
    """
    relations = [_relations(x, relation_heads) for x in (teacher, student)]
    return attention_error(*relations, padding_mask, causal)


def _relations(x, heads):
    """Return the scores (B, R, L, L) of x (B, N, L, H) with itself, with its own heads or R."""
    if heads is not None and heads != x.shape[1]:
        width = x.shape[1] * x.shape[-1]
        if width % heads:
            raise ValueError(
                f"relation_heads={heads} does not divide a width of {width}; choose a number that "
                "divides those of both"
            )
        x = split_heads(join_heads(x), heads)
    return ops.matmul(scaled(x), ops.swapaxes(x, -1, -2))


def _seen_keys(padding_mask, length, causal):
    """Return True where a query may attend to a key, (B, 1, 1, L), (L, L) or (B, 1, L, L)."""
    positions = ops.arange(length)
    seen = positions[:, None] >= positions if causal else None  # (L, L)
    if padding_mask is None:
        return seen
    real = ops.reshape(ops.cast(padding_mask, "bool"), (-1, 1, 1, length))
    return real if seen is None else ops.logical_and(real, seen)


def text_state_error(teacher, student, padding_mask, tokens=("first", "first")):
    """Compute the mean squared difference of the normalised states of one token of each text.

    Sun et al. 2019, 'Patient Knowledge Distillation', eq. 7. As in the released code, it is a mean
    over the width, where the paper has a sum.

    Args:
        teacher, student: states (B, L, D).
        tokens: the token that stands for the text, for the teacher and for the student: "first",
            or "last" for the last real token.

    Returns:
        (B,).
    """
    pairs = zip((teacher, student), tokens, strict=True)
    states = [_normalized(_text_state(x, padding_mask, token)) for x, token in pairs]
    return squared_error(*states, padding_mask)


def _text_state(x, padding_mask, token):
    if token == "first":
        return x[:, 0]
    if padding_mask is not None:
        padding_mask = ops.reshape(padding_mask, (-1, ops.shape(x)[1]))
    return LastState(dtype="float32")(x, padding_mask)


def _normalized(x):
    """Return vectors (..., D) at length 1; zeros stay zeros, and have a gradient."""
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=-1, keepdims=True), 1e-24))


def mean_number(x, weights=None):
    """Compute the weighted mean of several teachers' numbers (B, teachers, ...), as (B, ...)."""
    return ops.sum(x * _along(x, _shares(x, weights)), axis=1)


def mean_log_probability(logits, weights=None):
    """Compute the log of several teachers' mean probabilities, for logits (B, teachers, ...)."""
    shares = np.log(np.maximum(_shares(logits, weights), 1e-30))
    return ops.logsumexp(ops.log_softmax(logits) + _along(logits, shares), axis=1)


def _shares(x, weights):
    return np.full(x.shape[1], 1 / x.shape[1]) if weights is None else np.array(weights)


def _along(x, shares):
    """Return the teachers' shares (T,) as (T, 1, ...), to broadcast with x (B, T, ...)."""
    return ops.convert_to_tensor(shares.reshape((-1, *[1] * (len(x.shape) - 2))), x.dtype)


def _softened_divergence(teacher, student, temperature, teacher_weights=None):
    teacher, student = teacher / temperature, student / temperature
    return temperature**2 * _divergence(teacher, student, teacher_weights)


def _divergence(teacher, student, teacher_weights=None):
    """Compute KL(teacher || student) of the softmax of both over the last axis."""
    if len(teacher.shape) > len(student.shape):
        log_p = mean_log_probability(teacher, teacher_weights)
    else:
        log_p = ops.log_softmax(teacher)
    return ops.sum(ops.exp(log_p) * (log_p - ops.log_softmax(student)), axis=-1)


def _check_width(teacher, student):
    """Raise a ValueError unless the widths agree, and the axes too, up to one for teachers."""
    sizes = teacher.shape[-1], student.shape[-1]
    if None not in sizes and sizes[0] != sizes[1]:
        raise ValueError(
            f"the teacher's is {sizes[0]} wide and the student's {sizes[1]}; give the term a "
            "`projection` to the teacher's width"
        )
    more = len(teacher.shape) - len(student.shape)
    # The size of a teachers axis is static, unlike a length.
    if more not in (0, 1) or (more and teacher.shape[1] is None):
        raise ValueError(
            f"the teacher's has {len(teacher.shape)} axes and the student's "
            f"{len(student.shape)}; name tensors of one kind, of texts or of tokens"
        )
