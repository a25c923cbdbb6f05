"""The runtime under its public name; `distill.device.runtime` says what it does."""

from distill.device.runtime import (
    CLASSES,
    EndingChooser,
    QuestionAnswerer,
    SentenceScorer,
    TextClassifier,
    TextEmbedder,
    TextRunner,
    TokenTagger,
    load_runner,
)
from tfnlp.text.answers import Answer
from tfnlp.text.runners import Choice, Classification
from tfnlp.text.tags import Entity

__all__ = [
    "CLASSES",
    "Answer",
    "Choice",
    "Classification",
    "EndingChooser",
    "Entity",
    "QuestionAnswerer",
    "SentenceScorer",
    "TextClassifier",
    "TextEmbedder",
    "TextRunner",
    "TokenTagger",
    "load_runner",
]
