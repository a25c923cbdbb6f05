"""Bags of words, of n-grams and of morphemes, as sparse vectors."""

import dataclasses

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from tfnlp.baselines.korean_morphemes import morphemes
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting

UNITS = ("words", "characters", "morphemes")
# A single letter or syllable is a word too, unlike in scikit-learn's default.
WORD = r"(?u)\b\w+\b"


@dataclasses.dataclass(frozen=True)
class BagOfWords(Settings):
    """Settings of a bag of words.

    Raises:
        InputError: for a setting out of its bounds, or `max_ngram` below `min_ngram`.
    """

    unit: str = setting(
        "words", "Counted tokens; characters are n-grams within words.", choices=UNITS
    )
    min_ngram: int = setting(1, "Least number of tokens in an n-gram.", low=1)
    max_ngram: int = setting(2, "Largest number of tokens in an n-gram.", low=1)
    weighting: str = setting(
        "tfidf", "Weights of the counts: counts alone, or TF-IDF.", choices=("counts", "tfidf")
    )
    smooth_idf: bool = setting(True, "Count each term in one further document (TF-IDF).")
    min_documents: int = setting(1, "Documents that a term occurs in at least.", low=1)
    lowercase: bool = setting(True, "Fold capitals.")
    lsa_dim: int | None = setting(None, "Dimensions of latent semantic analysis, if given.", low=1)

    def __post_init__(self):
        super().__post_init__()
        if self.max_ngram < self.min_ngram:
            raise InputError(
                f"max_ngram={self.max_ngram} must be at least min_ngram={self.min_ngram}."
            )


def make_vectorizer(settings):
    """Return the scikit-learn transformer from texts to vectors.

    A row of TF-IDF has length 1 and the entries tf(t, d) idf(t), where idf(t) is
    ln((1 + n) / (1 + df(t))) + 1 smoothed, else ln(n / df(t)) + 1, for n documents of which df(t)
    hold the term. Latent semantic analysis (Deerwester et al. 1990) is a truncated singular value
    decomposition of the rows, each then scaled to length 1.

    Args:
        settings: a `BagOfWords`.

    Returns:
        A transformer; `fit_transform(texts)` is (texts, terms), sparse, or (texts, lsa_dim).
    """
    options = {
        "ngram_range": (settings.min_ngram, settings.max_ngram),
        "min_df": settings.min_documents,
        "lowercase": settings.lowercase,
        "analyzer": "char_wb" if settings.unit == "characters" else "word",
    }
    if settings.unit == "morphemes":
        options |= {"tokenizer": morphemes, "token_pattern": None}
    elif settings.unit == "words":
        options["token_pattern"] = WORD
    if settings.weighting == "counts":
        vectorizer = CountVectorizer(**options)
    else:
        vectorizer = TfidfVectorizer(smooth_idf=settings.smooth_idf, **options)
    if settings.lsa_dim is None:
        return vectorizer
    return make_pipeline(
        vectorizer, TruncatedSVD(settings.lsa_dim, random_state=0), Normalizer(copy=False)
    )


class NearestSpelling:
    """Search for the words of a list that are spelled most like another.

    The similarity is the cosine of TF-IDF vectors of character n-grams, with the edges of words.

    Args:
        words: a list of distinct strings.
        max_ngram: the longest n-gram.
    """

    def __init__(self, words, max_ngram=3):
        self.words = list(words)
        settings = BagOfWords(unit="characters", max_ngram=max_ngram)
        self._vectorizer = make_vectorizer(settings)
        self._rows = self._vectorizer.fit_transform(self.words)

    def nearest(self, word, k=1):
        """Return the `k` most similar words, as a list of (word, similarity)."""
        similarity = (self._rows @ self._vectorizer.transform([word]).T).toarray()[:, 0]
        best = np.argsort(-similarity, kind="stable")[:k]
        return [(self.words[i], float(similarity[i])) for i in best]
