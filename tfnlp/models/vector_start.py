"""Start of a model's token vectors from word vectors."""

import numpy as np

from tfnlp.utils.errors import InputError

# The tables of a model that word vectors are for.
TABLES = ("embeddings/token_table", "static_embeddings/token_table")


def start_from_vectors(model, tokenizer, vectors, seed=0):
    """Set the token vectors of a model to those of the words that the tokens spell.

    Tokens without a vector are drawn with the standard deviation of those that have one (Kim 2014,
    section 4.2).

    Args:
        model: a TextCNN, a bag or a recurrent network, from `build_model`.
        tokenizer: the model's.
        vectors: `tfnlp.baselines.WordVectors`, as wide as the model.
        seed: of the draws.

    Returns:
        The ids of the tokens that have a vector, a list.

    Raises:
        InputError: if no token has a vector.
    """
    tokens = tokenizer.tokens_by_id()
    ids = [i for i, token in enumerate(tokens) if token in vectors]
    if not ids:
        raise InputError(
            f"None of the {len(tokens)} tokens of the vocabulary has a word vector; give vectors "
            "of its words, or leave out the tokenizer to take the words of the vectors."
        )
    known = np.stack([vectors[tokens[i]] for i in ids])
    rows = model.text_config.vocabulary_size, known.shape[1]
    table = np.random.default_rng(seed).normal(0, known.std(), rows)
    table[ids] = known
    for weight in model.weights:
        if weight.path in TABLES:
            weight.assign(table)
    return ids


def share_of_tokens(tokenizer, ids, texts):
    """Return the share of the tokens of texts whose ids are among `ids`, without special ones."""
    token_ids = np.asarray(tokenizer.encode(texts).token_ids)
    unknown = tokenizer.unknown_token_id
    special = [i for i in tokenizer.special_token_ids if i != unknown]
    counted = token_ids[~np.isin(token_ids, special)]
    return float(np.isin(counted, ids).mean()) if len(counted) else 0.0
