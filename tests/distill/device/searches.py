"""What Keras writes, as files are to write it too."""

import tensorflow as tf


def without_xla(searcher):
    """A `Generator` or `Translator` whose search is a graph that XLA does not compile first.

    Compiling takes seconds for each of the few batches of a test.
    """
    searcher._run = tf.function(searcher._search, autograph=False)
    return searcher
