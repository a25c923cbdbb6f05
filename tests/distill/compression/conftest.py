"""A small config, and a corpus and tokenizers for tests of pruned vocabularies."""

import pytest

from tests.grammar_corpus import make_reviews
from tfnlp.text import train_tokenizer

KINDS = [
    ("bpe", "gpt2"),
    ("bpe", "roberta"),
    ("unigram", "albert"),
    ("unigram", "deberta-v2"),
    ("unigram", "xlm-roberta"),
    ("unigram", "xlnet"),
    ("wordpiece", None),
]


@pytest.fixture(scope="session")
def texts():
    """English and Korean reviews, the corpus being the first of them."""
    return [text for text, _ in make_reviews(300, seed=3)]


@pytest.fixture(scope="session")
def tokenizers(texts):
    """{(kind, family): a tokenizer of all texts}."""
    return {(kind, family): train_tokenizer(texts, kind, 600, family)[0] for kind, family in KINDS}
