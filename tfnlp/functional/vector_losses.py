"""Losses of the vectors of texts that belong together, or do not.

Each takes vectors (B, n, D) of n texts an example, the first its anchor, and returns the mean over
the batch, float32.
"""

from keras import ops

from tfnlp.functional.weighted_losses import weighted_mean


def unit(vectors):
    """Return vectors (..., D) of length 1, float32."""
    return ops.normalize(ops.cast(vectors, "float32"), axis=-1)


def cosines(vectors):
    """Return the cosine (B,) of the first two vectors of each example."""
    first, second = unit(vectors[:, 0]), unit(vectors[:, 1])
    return ops.sum(first * second, axis=-1)


def ranking_loss(vectors, labels=None, sample_weight=None, scale=20.0, symmetric=False):
    """Compute the multiple negatives ranking loss (Henderson et al. 2017, section 4.4).

    Each anchor is to find its own second text among all texts of the batch but the anchors, by
    a softmax of cosines times `scale` (InfoNCE, van den Oord et al. 2018, eq. 4).

    Args:
        vectors: (B, n, D): an anchor, the text that belongs to it, and n - 2 that do not.
        labels: not used.
        sample_weight: (B,), or None.
        scale: factor of the cosines, 1 / temperature.
        symmetric: average it with the loss by which each second text finds its anchor among the
            anchors (Günther et al. 2024, eq. 2).
    """
    vectors = unit(vectors)
    anchors = vectors[:, 0]
    # First the second texts of all examples, then the third ones.
    others = ops.reshape(ops.swapaxes(vectors[:, 1:], 0, 1), (-1, vectors.shape[-1]))
    scores = scale * ops.matmul(anchors, ops.transpose(others))  # (B, B * (n - 1))
    losses = _own_place(scores)
    if symmetric:
        size = ops.shape(vectors)[0]
        losses = (losses + _own_place(ops.transpose(scores[:, :size]))) / 2
    return weighted_mean(losses, sample_weight)


def _own_place(scores):
    """Return the cross-entropy (B,) of rows whose right place is their own number."""
    places = ops.arange(ops.shape(scores)[0])
    return ops.sparse_categorical_crossentropy(places, scores, from_logits=True)


def cosine_loss(vectors, labels, sample_weight=None):
    """Compute the squared difference of cosine and label (Reimers & Gurevych 2019, section 3).

    Args:
        vectors: (B, 2, D).
        labels: (B,), from -1 to 1.
        sample_weight: (B,), or None.
    """
    difference = cosines(vectors) - ops.cast(labels, "float32")
    return weighted_mean(ops.square(difference), sample_weight)


def cosent_loss(vectors, labels, sample_weight=None, scale=20.0):
    """Compute the CoSENT loss (Su 2022): `log(1 + sum exp(scale * (cos_j - cos_i)))`.

    The sum is over all i and j of the batch where label i is the higher one; weights do not count.

    Args:
        vectors: (B, 2, D).
        labels: (B,) numbers.
        sample_weight: not used.
        scale: factor of the cosines.
    """
    scores, labels = scale * cosines(vectors), ops.cast(labels, "float32")
    differences = scores[None] - scores[:, None]  # of j above i
    hidden = ops.where(labels[:, None] > labels[None], 0.0, -1e12)
    flat = ops.reshape(differences + hidden, (-1,))
    loss = ops.logsumexp(ops.concatenate([ops.zeros((1,)), flat]))
    return weighted_mean(loss[None])  # of all replicas


def triplet_loss(vectors, labels=None, sample_weight=None, margin=5.0):
    """Compute the triplet loss, `max(|a - p| - |a - n| + margin, 0)` (Reimers & Gurevych 2019).

    Args:
        vectors: (B, 3, D): an anchor, a text like it, and one unlike it.
        labels: not used.
        sample_weight: (B,), or None.
        margin: by which the distances are to differ.
    """
    vectors = ops.cast(vectors, "float32")
    near, far = (_distance(vectors[:, 0], vectors[:, i]) for i in (1, 2))
    return weighted_mean(ops.relu(near - far + margin), sample_weight)


def _distance(a, b):
    # As torch's `pairwise_distance`, whose gradient at 0 is not infinite.
    return ops.sqrt(ops.sum(ops.square(a - b + 1e-6), axis=-1))


def contrastive_loss(vectors, labels, sample_weight=None, margin=0.5):
    """Compute the contrastive loss of the cosine distance d (Hadsell et al. 2006, eq. 4).

    It is `d^2 / 2` where the label is 1, and `max(margin - d, 0)^2 / 2` where it is 0.

    Args:
        vectors: (B, 2, D).
        labels: (B,), 1 for texts that belong together, else 0.
        sample_weight: (B,), or None.
        margin: distance from which unlike texts are apart.
    """
    distance, labels = 1 - cosines(vectors), ops.cast(labels, "float32")
    near, far = ops.square(distance), ops.square(ops.relu(margin - distance))
    return weighted_mean((labels * near + (1 - labels) * far) / 2, sample_weight)


def matryoshka_loss(loss, vectors, labels, sample_weight=None, *, dims):
    """Compute the sum of a loss over the first entries of vectors (Kusupati et al. 2022, eq. 1).

    Args:
        loss: function of vectors, labels and weights.
        vectors, labels, sample_weight: its arguments.
        dims: how many entries, each at most D.
    """
    return sum(loss(unit(vectors[..., :dim]), labels, sample_weight) for dim in dims)
