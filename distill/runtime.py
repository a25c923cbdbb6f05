"""The runtime under its public name; `distill.device.runtime` says what it does."""

from distill.device.runtime import (
    CLASSES,
    Classification,
    QuestionAnswerer,
    SentenceScorer,
    TextClassifier,
    TextRunner,
    TokenTagger,
)

__all__ = [
    "CLASSES",
    "Classification",
    "QuestionAnswerer",
    "SentenceScorer",
    "TextClassifier",
    "TextRunner",
    "TokenTagger",
]
