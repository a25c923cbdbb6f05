"""Pipelines for fine-tuned models: texts in, answers out."""

from .keras_backend import KerasBackend as KerasBackend
from .keras_backend import load_runner as load_runner
from .keras_backend import read_kind as read_kind
from .pipeline import PIPELINES as PIPELINES
from .pipeline import Answerer as Answerer
from .pipeline import Chooser as Chooser
from .pipeline import Classifier as Classifier
from .pipeline import Embedder as Embedder
from .pipeline import Pipeline as Pipeline
from .pipeline import Scorer as Scorer
from .pipeline import Tagger as Tagger
from .pipeline import pipeline_of as pipeline_of
