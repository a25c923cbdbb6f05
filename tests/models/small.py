"""Sizes of small models."""


def sizes(**fields):
    """Fields of a small transformer's config, and what a test has otherwise."""
    small = {"vocabulary_size": 20, "num_layers": 2, "num_heads": 2, "hidden_dim": 8}
    return small | {"intermediate_dim": 16, "initializer_range": 0.3} | fields
