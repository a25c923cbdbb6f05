"""Clusters of a vocabulary sorted by frequency, for adaptive input and softmax."""

import itertools


def clusters(vocabulary_size, cutoffs):
    """Return the boundaries of the clusters: 0, the cutoffs, V.

    Raises:
        ValueError: if the cutoffs do not rise strictly between 0 and V.
    """
    ends = [0, *cutoffs, vocabulary_size]
    if any(a >= b for a, b in itertools.pairwise(ends)):
        raise ValueError(
            f"cutoffs={tuple(cutoffs)} must rise, between 0 and vocabulary_size={vocabulary_size}."
        )
    return ends


def cluster_widths(embedding_dim, div_value, num_clusters):
    """Return the width of each cluster's embeddings.

    Raises:
        ValueError: if the last width would be 0.
    """
    widths = [embedding_dim // div_value**i for i in range(num_clusters)]
    if widths[-1] < 1:
        raise ValueError(
            f"embedding_dim={embedding_dim} divided by div_value={div_value} for each of "
            f"{num_clusters - 1} cutoffs leaves no width for the last cluster."
        )
    return widths
