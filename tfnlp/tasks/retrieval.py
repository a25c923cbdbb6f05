"""Scores of a search: whether each query finds its text among all."""

import importlib.util
import re
from logging import WARNING, getLogger

import numpy as np
from absl import logging

# First hits that count.
K = 10


def retrieval_scores(similarities, texts):
    """Return scores of a search in which query i looks for text i, the only one that is relevant.

    Args:
        similarities: (queries, texts), the larger the nearer.
        texts: equal ones count as one.

    Returns:
        A dict of `ndcg_10` (Järvelin & Kekäläinen 2002, eq. 5, with one relevant text),
        `mrr_10`, and `recall_1` and `recall_10`, each from 0 to 1.
    """
    similarities = np.asarray(similarities)
    numbers = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    places = np.array([numbers[text] for text in texts])
    _, first = np.unique(places, return_index=True)
    similarities = similarities[:, first]
    right = np.take_along_axis(similarities, places[:, None], axis=1)
    # Texts as near as the right one stand before it, so that equal vectors find nothing, and
    # neither do those of a model that has diverged, NaN.
    ranks = (~(similarities < right)).sum(1)  # from 1
    hit = ranks <= K
    return {
        "ndcg_10": float(np.mean(hit / np.log2(ranks + 1))),
        "mrr_10": float(np.mean(hit / ranks)),
        "recall_1": float(np.mean(ranks == 1)),
        "recall_10": float(np.mean(hit)),
    }


def ndcg_10(relevances):
    """Return the nDCG of the first 10 hits of a search (Järvelin & Kekäläinen 2002, eq. 5).

    Args:
        relevances: of all hits, from the first on, 0 or more; without any above 0 it is 0.
    """
    discounts = 1 / np.log2(np.arange(2, K + 2))
    gains, ideal = (np.pad(x, (0, K))[:K] for x in (relevances, sorted(relevances)[::-1]))
    return float(gains @ discounts / (ideal @ discounts)) if np.any(ideal) else 0.0


def bm25_scores(queries, texts):
    """Return the BM25 score of each text for each query, (queries, texts); None without bm25s.

    Robertson & Zaragoza 2009, eq. 3.15, of whole words in lower case.
    """
    if importlib.util.find_spec("bm25s") is None:
        logging.info("BM25 is left out, as the package is missing: pip install bm25s.")
        return None
    for name in ("bm25s", "jax._src.xla_bridge"):  # of JAX, which it imports where it is
        getLogger(name).setLevel(WARNING)
    import bm25s

    index = bm25s.BM25()
    index.index([_words(text) for text in texts], show_progress=False)
    return np.stack([index.get_scores(_words(query)) for query in queries])


def _words(text):
    return re.findall(r"\w+", text.lower()) or [""]
