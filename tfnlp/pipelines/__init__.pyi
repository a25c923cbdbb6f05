"""Pipelines for fine-tuned models: texts in, answers out."""

from .keras_runners import CLASSES as CLASSES
from .keras_runners import load_runner as load_runner
from .keras_runners import read_kind as read_kind
