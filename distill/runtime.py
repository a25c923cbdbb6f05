"""Public names of the on-device runtime, which `distill.device.runtime` describes."""

from distill.device.generation import TextGenerator, Translator
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
from tfnlp.searches import Beam, Greedy
from tfnlp.text.answers import Answer
from tfnlp.text.continuations import Generated
from tfnlp.text.runners import Choice, Classification
from tfnlp.text.tags import Entity

__all__ = [
    "CLASSES",
    "Answer",
    "Beam",
    "Choice",
    "Classification",
    "EndingChooser",
    "Entity",
    "Generated",
    "Greedy",
    "QuestionAnswerer",
    "SentenceScorer",
    "TextClassifier",
    "TextEmbedder",
    "TextGenerator",
    "TextRunner",
    "TokenTagger",
    "Translator",
    "load_runner",
]
