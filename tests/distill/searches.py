"""What Keras writes, as files are to write it too."""

import numpy as np
import tensorflow as tf


def without_xla(searcher):
    """A `Generator` or `Translator` whose search is a graph that XLA does not compile first.

    Compiling takes seconds for each of the few batches of a test.
    """
    searcher._run = tf.function(searcher._search, autograph=False)
    return searcher


def assert_same_texts(found, expected):
    """Compare the `Generated` of each prompt, with scores where there are some."""
    for ours, theirs in zip(found, expected, strict=True):
        assert [x.token_ids for x in ours] == [x.token_ids for x in theirs]
        assert [(x.text, x.ended) for x in ours] == [(x.text, x.ended) for x in theirs]
        assert [x.score is None for x in ours] == [x.score is None for x in theirs]
        scores = [[x.score or 0 for x in texts] for texts in (ours, theirs)]
        np.testing.assert_allclose(*scores, atol=1e-4)
