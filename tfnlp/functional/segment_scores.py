"""Scores by segment: same or different."""

import dataclasses

from keras import ops


@dataclasses.dataclass
class SegmentTerm:
    """Scores by whether query and key are of one segment (Yang et al. 2019, section 2.5).

    Args:
        by_segment: (B, N, T, 2), each query's score of keys of its segment, and of others.
        is_same: boolean, broadcasts to (B, T, S), true where both are of one segment.
    """

    by_segment: object
    is_same: object

    def compute(self, length, source_length, product=None):
        """Compute the scores, (B, N, T, S); never rounded, of a product with two vectors."""
        return segment_scores(self.by_segment, self.is_same)


def segment_scores(by_segment, is_same):
    """Expand `by_segment` (B, N, T, 2) to the scores (B, N, T, S)."""
    same, different = by_segment[..., :1], by_segment[..., 1:]
    return ops.where(ops.expand_dims(is_same, 1), same, different)


def segment_scores_gradient(upstream, is_same):
    """Compute the gradient of `segment_scores` by `by_segment`."""
    x = ops.cast(upstream, "float32")
    by_same = ops.sum(ops.where(ops.expand_dims(is_same, 1), x, 0.0), axis=-1)
    by_different = ops.sum(x, axis=-1) - by_same
    return ops.cast(ops.stack([by_same, by_different], axis=-1), upstream.dtype)
