"""Public names of the on-device runtime, which `distill.runtime.litert_runners` describes."""

from distill.runtime.litert_runners import (
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
from distill.runtime.text_generation import TextGenerator, Translator
from tfnlp.pipelines.base_runners import Choice, Classification
from tfnlp.text.answers import Answer
from tfnlp.text.continuations import Generated
from tfnlp.text.tags import Entity
from tfnlp.utils.generation_settings import Beam, Greedy

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
