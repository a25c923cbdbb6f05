"""Sizes of small models, and their tokenizers."""

from tfnlp.configs import config_by_name
from tfnlp.text.tokenizers.tokenizer_loading import kind_for, train_tokenizer

TEXTS = ["a fine film , not a dull one", "정말 재미있는 영화예요", "the plot is thin ."] * 20


def sizes(**fields):
    """Fields of a small transformer's config, and what a test has otherwise."""
    small = {"vocabulary_size": 20, "num_layers": 2, "num_heads": 2, "hidden_dim": 8}
    return small | {"intermediate_dim": 16, "initializer_range": 0.3} | fields


def tokenizer_of(family):
    """A tokenizer of the family's kind, trained on `TEXTS`."""
    model_type = config_by_name(family).model_type
    kind = kind_for(model_type)
    return train_tokenizer(TEXTS, kind, 300, None if kind == "wordpiece" else model_type)[0]
