"""Token tables that start from word vectors."""

import numpy as np
import pytest

from tfnlp.baselines import WordVectors
from tfnlp.models import BagConfig, TextCnnConfig, build_model, share_of_tokens, start_from_vectors
from tfnlp.text import word_tokenizer
from tfnlp.utils.errors import InputError

WORDS = ["film", "plot", "good"]
VECTORS = WordVectors(WORDS, 3 * np.random.default_rng(0).normal(size=(3, 50)))


def test_tokens_start_from_their_words_and_others_with_the_same_spread():
    texts = ["a good film", *(f"word{i} word{i}" for i in range(300))]
    tokenizer = word_tokenizer(WORDS, texts)
    config = TextCnnConfig(tokenizer.vocabulary_size, 50, num_filters=2, channels="multichannel")
    model = build_model(config, "classifier", 2)
    ids = start_from_vectors(model, tokenizer, VECTORS)
    assert ids == [tokenizer.token_id(word) for word in WORDS]
    tables = [model.get_layer(f"{x}embeddings").token_table for x in ("", "static_")]
    np.testing.assert_array_equal(*tables)
    table = np.asarray(tables[0])
    np.testing.assert_array_equal(table[ids], VECTORS.vectors)
    others = np.delete(table, ids, axis=0)
    assert others.std() == pytest.approx(VECTORS.vectors.std(), rel=0.05)
    # Of "a good film" two of three tokens, the unknown one counted.
    assert share_of_tokens(tokenizer, ids, texts[:1]) == pytest.approx(2 / 3)
    assert share_of_tokens(tokenizer, ids, [""]) == 0


def test_vectors_of_other_words_are_refused():
    tokenizer = word_tokenizer(["song"], [])
    model = build_model(BagConfig(tokenizer.vocabulary_size, 50), "classifier", 2)
    with pytest.raises(InputError, match="None of the 6 tokens of the vocabulary has a word vec"):
        start_from_vectors(model, tokenizer, VECTORS)
