"""Distances between tensors of a teacher and a student, for a `Term`.

Each function takes both tensors, in float32, and the padding mask: (B, L), or (B, choices, L)
beside tensors of B * choices texts; None for no padding. It returns the distance of each text
(B,), token (B, L) or pair of tokens (B, L, L), or a pair of distances and their weights. Those of
softened logits take a `temperature` too.
"""

from keras import ops

from tfnlp.functional.attention_heads import join_heads, scaled, split_heads
from tfnlp.functional.links import IDENTITY, kl_divergence
from tfnlp.functional.masks import MASKED
from tfnlp.layers import LastState


def link_divergence(link):
    """Return the distance of the logits of a `tfnlp.functional.links.Link`, its divergence."""

    def distance(teacher, student, padding_mask, temperature=1.0):
        _check_size(teacher, student)
        pair = (link.without_padding(logits, padding_mask) for logits in (teacher, student))
        return link.divergence(*pair, temperature)

    return distance


def squared_error(teacher, student, padding_mask):
    """Compute the mean squared difference of vectors (..., D), as (...)."""
    _check_size(teacher, student)
    return IDENTITY.divergence(teacher, student)


def cosine_distance(teacher, student, padding_mask):
    """Compute one minus the cosine similarity of vectors (..., D), as (...)."""
    _check_size(teacher, student)
    return 1 - ops.sum(_normalized(teacher) * _normalized(student), axis=-1)


def vector_error(teacher, student, padding_mask):
    """Compute the squared distance of vectors (B, D) in squares of the teacher's length, (B,).

    Reimers & Gurevych 2020, eq. 1, with a loss that does not depend on D and on the length: of
    vectors of length 1 it is twice the cosine distance.
    """
    advice = "compare their cosines alone, by soft_label_weight=0, or give a student of this width"
    _check_size(teacher, student, advice=advice)
    error, size = (ops.sum(ops.square(x), axis=-1) for x in (teacher - student, teacher))
    return error / ops.maximum(size, 1e-12)


def similarity_error(teacher, student, padding_mask, dims=()):
    """Compute the mean squared difference of a text's cosines with the texts of a batch, (B,).

    Park et al. 2019, 'Relational Knowledge Distillation', section 3, with cosines; widths may
    differ.

    Args:
        teacher, student: vectors (B, D) and (B, D').
        padding_mask: not used.
        dims: widths at which the student's first entries are vectors too, whose errors are added.
    """
    cosines = _cosines(teacher)
    parts = [student, *(student[:, :dim] for dim in dims)]
    return sum(ops.mean(ops.square(cosines - _cosines(part)), axis=-1) for part in parts)


def _cosines(vectors):
    vectors = _normalized(vectors)
    return ops.matmul(vectors, ops.transpose(vectors))


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
    """
    advice = "give the student as many heads, or take minilm_v2, which splits both alike"
    _check_size(teacher, student, axis=1, advice=advice)
    length = ops.shape(teacher)[-1]
    earlier = ops.tril(ops.ones((length, length), "bool")) if causal else True
    real = True
    if padding_mask is not None:
        real = ops.reshape(ops.cast(padding_mask, "bool"), (-1, 1, 1, length))
    visible = ops.logical_and(real, earlier)  # (B, 1, 1 or L, L)
    teacher, student = (ops.where(visible, scores, MASKED) for scores in (teacher, student))
    return ops.mean(kl_divergence(teacher, student), axis=1)  # of (B, N, L)


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
    states = zip((teacher, student), tokens, strict=True)
    normalized = [_normalized(_text_state(x, padding_mask, token)) for x, token in states]
    return squared_error(*normalized, None)


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


def _check_size(
    teacher, student, axis=-1, advice="give the term a `projection` to the teacher's width"
):
    """Raise a ValueError unless tensors have as many axes and one size, which would broadcast."""
    shapes = [tuple(x.shape) for x in (teacher, student)]
    sizes = {shape[axis] for shape in shapes} - {None}
    if len(shapes[0]) != len(shapes[1]) or len(sizes) > 1:
        raise ValueError(f"their shapes are {shapes[0]} and {shapes[1]}; {advice}")
