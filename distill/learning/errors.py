"""How far a student's tensor is from its teacher's: what a `Term` takes as its error.

Each takes both tensors, in float32, and the padding mask ((B, L), or (B, choices, L) beside
tensors of B * choices texts; None for no padding), and gives the error of each text (B,), token
(B, L) or pair of tokens (B, L, L). Those that soften logits take a `temperature` too. Of
several teachers, whose tensor has an axis more, (B, teachers, ...), the means of probabilities or
numbers are compared.
"""

from keras import ops

from tfnlp.losses import check_classes

HIDDEN = -1e9


def class_error(teacher, student, padding_mask, temperature):
    """The divergence of softened probabilities of classes, T^2 KL(teacher || student).

    Hinton et al. 2015, 'Distilling the Knowledge in a Neural Network', section 2: logits are
    divided by the temperature T, and the loss multiplied by its square, so that its gradient
    keeps its size.

    Args:
        teacher, student: logits (..., C).

    Returns:
        (...).
    """
    check_classes(student)
    _check_width(teacher, student)
    return _softened_divergence(teacher, student, temperature)


def position_error(teacher, student, padding_mask, temperature):
    """As `class_error`, of a text's positions, padding left out.

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
    return _softened_divergence(teacher, student, temperature)


def squared_error(teacher, student, padding_mask):
    """The mean squared difference of vectors (..., D), as (...)."""
    _check_width(teacher, student)
    if len(teacher.shape) > len(student.shape):
        teacher = ops.mean(teacher, axis=1)
    return ops.mean(ops.square(teacher - student), axis=-1)


def cosine_error(teacher, student, padding_mask):
    """One minus the cosine of the angle between vectors (..., D), as (...)."""
    _check_width(teacher, student)
    return 1 - ops.sum(_normalized(teacher) * _normalized(student), axis=-1)


def score_error(teacher, student, padding_mask):
    """The mean squared difference of attention scores (B, N, L, L) over the heads, as (B, L, L).

    Where the numbers of heads differ, the scores are averaged over the heads first.
    """
    if teacher.shape[1] != student.shape[1]:
        teacher = ops.mean(teacher, axis=1, keepdims=True)
        student = ops.mean(student, axis=1, keepdims=True)
    return ops.mean(ops.square(teacher - student), axis=1)


def _normalized(x):
    """Vectors (..., D) of length 1; zeros stay zeros, and have a gradient."""
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=-1, keepdims=True), 1e-24))


def _softened_divergence(teacher, student, temperature):
    return temperature**2 * _divergence(teacher / temperature, student / temperature)


def _divergence(teacher, student):
    """KL(teacher || student) of the softmax of both over the last axis."""
    log_p = ops.log_softmax(teacher)
    if len(teacher.shape) > len(student.shape):
        log_p = ops.logsumexp(log_p, axis=1) - ops.log(float(teacher.shape[1]))
    return ops.sum(ops.exp(log_p) * (log_p - ops.log_softmax(student)), axis=-1)


def _check_width(teacher, student):
    sizes = teacher.shape[-1], student.shape[-1]
    if None not in sizes and sizes[0] != sizes[1]:
        raise ValueError(
            f"the teacher's is {sizes[0]} wide and the student's {sizes[1]}; give the term a "
            "`projection` to the teacher's width"
        )
