"""Korean morphemes, apart from scikit-learn, which takes seconds to import."""

import functools

from tfnlp.utils.errors import needs_packages


def morphemes(text):
    """Return the morphemes of a Korean text in order, by kiwipiepy, split where one has a space.

    Raises:
        InputError: if kiwipiepy is not installed.
    """
    return [part for token in _kiwi().tokenize(text) for part in token.form.split()]


@functools.cache
def _kiwi():
    with needs_packages("Splitting into morphemes", "kiwipiepy"):
        import kiwipiepy
    return kiwipiepy.Kiwi(num_workers=1)
