"""Public names of the on-device runtime, which `distill.runtime.litert_runners` describes."""

import lazy_loader

from tfnlp.pipelines.base_runners import Choice, Classification
from tfnlp.text.answers import Answer
from tfnlp.text.continuations import Generated
from tfnlp.text.tags import Entity
from tfnlp.utils.generation_settings import Beam, Greedy

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["Answer", "Beam", "Choice", "Classification", "Entity", "Generated", "Greedy"]
