"""Promises of all objectives: their batches depend on seed, epoch and number alone."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives.batches.test_token_stream import Tokens, large_corpus
from tests.objectives.small import numbered
from tests.objectives.test_permutation_lm import TEXTS
from tfnlp.objectives import (
    CausalLM,
    MaskedLM,
    NextSentence,
    PermutationLM,
    ReplacedTokens,
    SentenceOrder,
)
from tfnlp.text import WordPieceTokenizer
from tfnlp.text.tokenizers.tokenizer_loading import train_tokenizer

LETTERS = WordPieceTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", *(f"w{i}" for i in range(2000))]
)
# Each objective with another one of its kind.
OBJECTIVES = [
    (MaskedLM(), MaskedLM(share=0.2)),
    (MaskedLM("spans"), MaskedLM("words")),
    (NextSentence(), NextSentence(MaskedLM("words"))),
    (SentenceOrder(), NextSentence(MaskedLM("spans"))),
    (ReplacedTokens(), ReplacedTokens(masked=1.0)),
    (CausalLM(), CausalLM(memory=True)),
    (CausalLM(memory=True), CausalLM()),
    (PermutationLM(None, 3, 2), PermutationLM(None, 3, 1)),
    (PermutationLM(8, 3, 2), PermutationLM(8, 3, 2, bidirectional=False)),
]


@pytest.fixture(scope="module")
def batches_of():
    """Batches of an objective by seed and maximum length."""
    rng = np.random.default_rng(0)
    pairs = numbered(*(rng.integers(1, 9, rng.integers(2, 12)) for _ in range(40)))
    stream, xlnet = large_corpus(documents=30, lowest=7), None
    xlnet = train_tokenizer(TEXTS, "unigram", 60, "xlnet")[0]

    def make(objective, seed=1, length=21):
        if isinstance(objective, CausalLM | PermutationLM):
            tokenizer = Tokens() if isinstance(objective, CausalLM) else xlnet
            return objective.batches(stream, tokenizer, 4, length, seed=seed)
        return objective.batches(pairs, LETTERS, 4, length, seed=seed)

    return make


def same(a, b):
    flat = zip(*map(tf.nest.flatten, (a, b)), strict=True)
    return all(np.array_equal(x, y) for x, y in flat)


@pytest.mark.parametrize(("objective", "other"), OBJECTIVES, ids=repr)
def test_batches_depend_on_seed_epoch_and_number_alone(objective, other, batches_of):
    batches = batches_of(objective)
    whole = list(batches.epoch(2))
    assert len(whole) == len(batches) > 3
    assert sum(len(inputs["token_ids"]) for inputs, _ in whole) == len(batches.lengths)
    assert same(list(batches_of(objective).epoch(2, skip=3)), whole[3:])
    again = [tf.nest.map_structure(np.asarray, b) for b in batches.dataset(lambda: 2, skip=2)]
    assert same(again, whole[2:])
    assert not same(next(batches.epoch(3)), whole[0])
    assert not same(next(batches_of(objective, seed=2).epoch(2)), whole[0])
    prints = [
        made.fingerprint()
        for made in (batches, batches_of(objective), batches_of(objective, seed=2))
    ]
    prints += [batches_of(objective, length=20).fingerprint(), batches_of(other).fingerprint()]
    assert prints[0] == prints[1] and len({*prints}) == 4
    # TensorFlow may write over an array that it receives, so that none may be there twice.
    for a, b in itertools.combinations(tf.nest.flatten(whole[0]), 2):
        assert not np.shares_memory(a, b)
