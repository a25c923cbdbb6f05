"""Settings of the augmentation of texts, without TensorFlow."""

import dataclasses

from tfnlp.utils.settings import Settings, setting

SEED = "Seed of the draws, which depend only on it and on the text's number."


@dataclasses.dataclass(frozen=True)
class ReplacementConfig(Settings):
    """Settings of word replacement; the defaults are those of Jiao et al. 2020, algorithm 1."""

    probability: float = setting(0.4, "Probability of replacing a word.", low=0, high=1)
    copies: int = setting(20, "Copies of each text.", low=1)
    candidates: int = setting(15, "Words to choose a replacement from.", low=1)
    seed: int = setting(0, SEED, low=0)


@dataclasses.dataclass(frozen=True)
class ContinuationConfig(Settings):
    """Settings of text continuation, which keeps a word of a text at least."""

    copies: int = setting(4, "Continuations of each text.", low=1)
    kept: float = setting(0.5, "Share of a text's words to keep.", low=0, high=1)
    max_tokens: int = setting(32, "Most tokens to generate.", low=1)
    top_k: int = setting(40, "Most probable tokens to sample from.", low=1)
    temperature: float = setting(1.0, "Divisor of the logits.", low=1e-3)
    seed: int = setting(0, SEED, low=0)
