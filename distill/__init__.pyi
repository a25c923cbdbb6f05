"""Distillation of a fine-tuned teacher into a small student for a phone."""

from . import compression as compression
from . import export as export
from . import learning as learning
from . import reports as reports
from . import runtime as runtime
from . import search as search
