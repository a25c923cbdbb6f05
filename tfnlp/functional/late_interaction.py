"""Late interaction: the likeness of a query and a text from the vectors of their tokens.

Needs no Keras, as it runs on devices too.
"""


def max_sim(query, text):
    """Return the sum, over a query's tokens, of the largest product with a token of the text.

    Khattab & Zaharia 2020 ('ColBERT'), eq. 3, where vectors have the length 1.

    Args:
        query: (Q, D).
        text: (L, D).
    """
    return float((query @ text.T).max(axis=1).sum())
