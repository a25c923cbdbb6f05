"""Distances of documents by the vectors of their words."""

import collections
import os

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from tfnlp.utils.errors import InputError, needs_packages

# POT would import every array library that is installed, TensorFlow too.
for _backend in ("TENSORFLOW", "PYTORCH", "JAX", "CUPY"):
    os.environ.setdefault(f"POT_BACKEND_DISABLE_{_backend}", "1")


class Document:
    """Words of a document that have vectors, each once, with their shares.

    Args:
        words: a list of tokens.
        vectors: {word: vector (D,)}, or any object with `in` and `[]`.
        stop_words: words to leave out.

    Attributes:
        shares: (n,), the share of each distinct word, which sum to 1 (nBOW).
        points: (n, D), their vectors.

    Raises:
        InputError: if no word is left.
    """

    def __init__(self, words, vectors, stop_words=ENGLISH_STOP_WORDS):
        counts = collections.Counter(
            word for word in words if word not in stop_words and word in vectors
        )
        if not counts:
            shown = " ".join(words[:10]) or "no words"
            raise InputError(
                f"A document ({shown}) has no word with a vector, stop words left out; leave the "
                "document out, or give vectors of its words."
            )
        self.shares = np.array(list(counts.values()), float) / counts.total()
        self.points = np.array([vectors[word] for word in counts], float)

    @property
    def centroid(self):
        """The mean vector, (D,)."""
        return self.shares @ self.points


def word_movers_distance(first, second):
    """Compute the least cost to move the words of one document to those of the other.

    Kusner et al. 2015, 'From Word Embeddings To Document Distances', eq. 1:
    min over T >= 0 of sum_ij T_ij |x_i - x_j|, where T has the shares of the documents as its row
    and column sums. Solved exactly.

    Args:
        first, second: `Document`s.
    """
    with needs_packages("The word mover's distance", "POT"):
        from ot import emd2
    return float(emd2(first.shares, second.shares, cdist(first.points, second.points)))


def relaxed_distance(first, second):
    """Compute the larger of two lower bounds of `word_movers_distance` (section 4).

    Each keeps one of the two constraints: all of a word goes to the nearest one.

    Args:
        first, second: `Document`s.
    """
    costs = cdist(first.points, second.points)
    return float(max(first.shares @ costs.min(1), second.shares @ costs.min(0)))


def centroid_distance(first, second):
    """Compute the distance of the mean vectors, a lower bound too (section 4).

    Args:
        first, second: `Document`s.
    """
    return float(np.linalg.norm(first.centroid - second.centroid))


class DocumentIndex:
    """Documents that are searched by the word mover's distance, exactly.

    Prefetch and prune (section 4): documents in order of `centroid_distance`; those whose lower
    bounds exceed the distance of the k-th nearest so far are skipped.

    Args:
        documents: a list of `Document`s.

    Attributes:
        solved: the number of exact distances of the last search.
    """

    def __init__(self, documents):
        self.documents = list(documents)
        self._centroids = np.array([document.centroid for document in self.documents])
        self.solved = 0

    def nearest(self, query, k=1):
        """Return the `k` nearest documents, as a list of (index, distance), nearest first.

        Args:
            query: a `Document`.
            k: the number of documents.
        """
        bounds = np.linalg.norm(self._centroids - query.centroid, axis=1)
        nearest, self.solved = [], 0
        for i in np.argsort(bounds, kind="stable"):
            document = self.documents[i]
            if len(nearest) == k:
                farthest = nearest[-1][1]
                if bounds[i] >= farthest:
                    break  # and all further ones
                if relaxed_distance(query, document) >= farthest:
                    continue
            self.solved += 1
            nearest.append((int(i), word_movers_distance(query, document)))
            nearest = sorted(nearest, key=lambda pair: pair[1])[:k]
        return nearest
