"""Distances between tensors of a teacher and a student, for a `Term`.

Each function takes both tensors, in float32, and the padding mask: (B, L), or (B, choices, L)
beside tensors of B * choices texts; None for no padding. It returns the distance of each text
(B,), token (B, L) or pair of tokens (B, L, L), or a pair of distances and their weights. Those of
softened logits take a `temperature` too. Several teachers add an axis: (B, teachers, ...). Their
probabilities or numbers are averaged by `teacher_weights`, a tuple whose sum is 1; all teachers
count the same where it is None.
"""

import numpy as np
from keras import ops

from tfnlp.functional.attention_heads import join_heads, scaled, split_heads
from tfnlp.layers import LastState
from tfnlp.weighted_losses import check_classes

HIDDEN = -1e9  # score of a masked position
# Logits over the positions of a text.
POSITION_LOGITS = ("start_logits", "end_logits")


def class_divergence(teacher, student, padding_mask, temperature, teacher_weights=None):
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
    log_p = _log_probability(teacher / temperature, student, teacher_weights)
    log_q = ops.log_softmax(student / temperature)
    return temperature**2 * _kl(log_p, log_q)


def position_divergence(teacher, student, padding_mask, temperature, teacher_weights=None):
    """Compute `class_divergence` over the positions of a text, without padding.

    Args:
        teacher, student: logits (B, L).

    Returns:
        (B,).
    """
    if padding_mask is not None:
        real = ops.cast(padding_mask, "bool")
        teacher_real = real[:, None] if _has_teachers(teacher, student) else real
        teacher = ops.where(teacher_real, teacher, HIDDEN)
        student = ops.where(real, student, HIDDEN)
    log_p = _log_probability(teacher / temperature, student, teacher_weights)
    log_q = ops.log_softmax(student / temperature)
    return temperature**2 * _kl(log_p, log_q)


def squared_error(teacher, student, padding_mask, teacher_weights=None):
    """Compute the mean squared difference of vectors (..., D), as (...)."""
    _check_width(teacher, student)
    if _has_teachers(teacher, student):
        teacher = mean_number(teacher, teacher_weights)
    return ops.mean(ops.square(teacher - student), axis=-1)


def cosine_distance(teacher, student, padding_mask):
    """Compute one minus the cosine similarity of vectors (..., D), as (...)."""
    _check_width(teacher, student)
    return 1 - ops.sum(_normalized(teacher) * _normalized(student), axis=-1)


def attention_score_error(teacher, student, padding_mask, causal=False):
    """Compute the mean squared difference of attention scores (B, N, L, L) over heads, (B, L, L).

    Jiao et al. 2020, 'TinyBERT', eq. 7. If the numbers of heads differ, the scores are first
    averaged over the heads. If `causal` is true, keys after the query have weight 0.
    """
    if teacher.shape[1] != student.shape[1]:
        teacher = ops.mean(teacher, axis=1, keepdims=True)  # (B, 1, L, L)
        student = ops.mean(student, axis=1, keepdims=True)
    errors = ops.mean(ops.square(teacher - student), axis=1)
    return (errors, ops.tril(ops.ones_like(errors))) if causal else errors


def attention_divergence(teacher, student, padding_mask, causal=False):
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
        visible = _visible_keys(padding_mask, ops.shape(teacher)[-1], causal)
        teacher, student = (ops.where(visible, scores, HIDDEN) for scores in (teacher, student))
    by_head = _kl(ops.log_softmax(teacher), ops.log_softmax(student))  # (B, N, L)
    return ops.mean(by_head, axis=1)


def relation_divergence(teacher, student, padding_mask, relation_heads=None, causal=False):
    """Compute `attention_divergence` of the relations of a tensor with itself, X X^T / sqrt(H).

    Wang et al. 2020, 'MiniLM', eq. 4 and 5, for values; Wang et al. 2021, 'MiniLMv2', section 3,
    for queries, keys or values, whose heads are joined and split again.

    Args:
        teacher, student: queries, keys or values (B, N, L, H).
        relation_heads: the number of heads to split both into; unchanged where None.
        causal: whether later keys are masked.

    Returns:
        (B, L).
    """
    if relation_heads is not None:
        teacher, student = (_with_heads(x, relation_heads) for x in (teacher, student))
    relations = [ops.matmul(scaled(x), ops.swapaxes(x, -1, -2)) for x in (teacher, student)]
    return attention_divergence(*relations, padding_mask, causal)  # of (B, R, L, L)


def text_state_distance(teacher, student, padding_mask, tokens=("first", "first")):
    """Compute the mean squared difference of the normalised states of one token of each text.

    Sun et al. 2019, 'Patient Knowledge Distillation', eq. 7: ||h^S / |h^S| - h^T / |h^T|||^2. As
    in the released code, it is a mean over the width, where the paper has a sum.

    Args:
        teacher, student: states (B, L, D).
        tokens: the token that stands for the text, for the teacher and for the student: "first",
            or "last" for the last real token.

    Returns:
        (B,).
    """
    teacher_state = _text_state(teacher, padding_mask, tokens[0])  # (B, D)
    student_state = _text_state(student, padding_mask, tokens[1])
    return squared_error(_normalized(teacher_state), _normalized(student_state), None)


def mean_number(x, weights=None):
    """Compute the weighted mean of several teachers' numbers (B, teachers, ...), as (B, ...)."""
    return ops.sum(x * _by_teacher(_shares(x, weights), x), axis=1)


def mean_log_probability(logits, weights=None):
    """Compute the log of several teachers' mean probabilities, for logits (B, teachers, ...)."""
    log_shares = np.log(np.maximum(_shares(logits, weights), 1e-30))
    return ops.logsumexp(ops.log_softmax(logits) + _by_teacher(log_shares, logits), axis=1)


def _shares(x, weights):
    return np.full(x.shape[1], 1 / x.shape[1]) if weights is None else np.array(weights)


def _by_teacher(shares, x):
    """Return the teachers' shares (T,) as (T, 1, ...), to broadcast with x (B, T, ...)."""
    return ops.convert_to_tensor(shares.reshape((-1, *[1] * (len(x.shape) - 2))), x.dtype)


def _has_teachers(teacher, student):
    """Return whether a teacher's tensor has an axis of several teachers."""
    return len(teacher.shape) > len(student.shape)


def _log_probability(logits, student, teacher_weights):
    """Return the log probabilities of a teacher's logits, or of the mean of several teachers'."""
    if _has_teachers(logits, student):
        return mean_log_probability(logits, teacher_weights)
    return ops.log_softmax(logits)


def _kl(log_p, log_q):
    """Compute KL(p || q) of log probabilities over the last axis, sum of p (log p - log q)."""
    return ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)


def _visible_keys(padding_mask, length, causal):
    """Return True where a query may attend to a key, (B, 1, 1, L), (L, L) or (B, 1, L, L)."""
    positions = ops.arange(length)
    earlier = positions[:, None] >= positions if causal else None  # (L, L)
    if padding_mask is None:
        return earlier
    real = ops.reshape(ops.cast(padding_mask, "bool"), (-1, 1, 1, length))
    return real if earlier is None else ops.logical_and(real, earlier)


def _with_heads(x, heads):
    """Return x (B, N, L, H) with another number of heads, (B, R, L, N * H / R)."""
    if heads == x.shape[1]:
        return x
    width = x.shape[1] * x.shape[-1]
    if width % heads:
        raise ValueError(
            f"relation_heads={heads} does not divide a width of {width}; choose a number that "
            "divides those of both"
        )
    return split_heads(join_heads(x), heads)


def _text_state(x, padding_mask, token):
    """Return the state (B, D) of the first or the last real token of x (B, L, D)."""
    if token == "first":
        return x[:, 0]
    if padding_mask is not None:
        padding_mask = ops.reshape(padding_mask, (-1, ops.shape(x)[1]))
    return LastState(dtype="float32")(x, padding_mask)


def _normalized(x):
    """Return vectors (..., D) at length 1; zeros stay zeros, and have a gradient."""
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=-1, keepdims=True), 1e-24))


def _check_width(teacher, student):
    """Raise a ValueError unless the widths agree, and the axes too, up to one for teachers."""
    sizes = teacher.shape[-1], student.shape[-1]
    if None not in sizes and sizes[0] != sizes[1]:
        raise ValueError(
            f"the teacher's is {sizes[0]} wide and the student's {sizes[1]}; give the term a "
            "`projection` to the teacher's width"
        )
    extra_axes = len(teacher.shape) - len(student.shape)
    # The size of a teachers axis is static, unlike a length.
    if extra_axes not in (0, 1) or (extra_axes and teacher.shape[1] is None):
        raise ValueError(
            f"the teacher's has {len(teacher.shape)} axes and the student's "
            f"{len(student.shape)}; name tensors of one kind, of texts or of tokens"
        )
