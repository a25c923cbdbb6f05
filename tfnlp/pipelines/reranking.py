"""Reranking of the first hits of a search, by pipelines from folders or files."""

import numpy as np

from tfnlp.tasks.kinds import CLASSIFIER, SCORER, TOKEN_EMBEDDER
from tfnlp.utils.errors import InputError


def cross_encoder(runner, label=None):
    """Return a function of a query and texts to how well each text fits, by a model of pairs.

    Nogueira & Cho 2019 ('Passage Re-ranking with BERT'), section 3.

    Args:
        runner: a `Classifier` or a `Scorer` of pairs, the query first.
        label: the class of a text that fits; of 2 classes the second where None.

    Raises:
        InputError: for another model, one that was trained on single texts, and a label that it
            has not.
    """
    if runner.kind not in (SCORER, CLASSIFIER):
        raise InputError(
            f"A model of the kind {runner.kind} does not compare texts; give a classifier or a "
            "regression of pairs, or an embedder, its file exported with `token_vectors`."
        )
    # Folders of others have no settings, and do not say.
    if not runner.settings.get("pairs", not runner.settings):
        raise InputError(
            "The model was trained on single texts, and compares none; give one of pairs, as of "
            "finetune_classifier with pair_column."
        )
    if runner.kind == SCORER:
        return lambda query, texts: np.array(runner.score([query] * len(texts), [*texts]))
    if label is None and len(runner.labels) == 2:
        label = runner.labels[1]
    if label not in runner.labels:
        raise InputError(
            f"positive_label={label} is none of the model's labels, {', '.join(runner.labels)}."
        )

    def score(query, texts):
        answers = runner.classify([query] * len(texts), [*texts])
        return np.array([answer.probabilities[label] for answer in answers])

    return score


def late_interaction(runner, texts):
    """Return a function of a query and some of these texts to how well each fits, by `max_sim`.

    Args:
        runner: a `TokenEmbedder`.
        texts: all texts, whose vectors are computed once.
    """
    texts = [*dict.fromkeys(texts)]
    vectors = dict(zip(texts, runner.embed_tokens(texts, runner.text_prompt), strict=True))

    def score(query, hits):
        (of_query,) = runner.embed_tokens([query], runner.query_prompt)
        return np.array([max_sim(of_query, vectors[hit]) for hit in hits])

    return score


def max_sim(query, text):
    """Return the sum, over a query's tokens, of the largest product with a token of the text.

    Khattab & Zaharia 2020 ('ColBERT'), eq. 3, where vectors have the length 1.

    Args:
        query: (Q, D).
        text: (L, D); without a token the sum is 0.
    """
    return float((query @ text.T).max(axis=1).sum()) if len(text) else 0.0


def reranker(runner, texts, label=None):
    """Return the function of `late_interaction` or `cross_encoder`, by the kind of a pipeline."""
    if runner.kind == TOKEN_EMBEDDER:
        return late_interaction(runner, texts)
    return cross_encoder(runner, label)


def rerank(scores, count):
    """Return the places of hits in their new order: those with scores by them, then the others.

    Args:
        scores: of the first hits; equal ones stay in order.
        count: all hits.
    """
    return [*np.argsort(-scores, kind="stable"), *range(len(scores), count)]
