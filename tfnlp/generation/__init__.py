"""Text generation: greedy search, beam search and sampling, with cached keys and values.

Decisions: docs/decisions/generation.md.
"""

import lazy_loader

from tfnlp.generation.continuations import Generated
from tfnlp.generation.generation_settings import Beam, Constraints, Greedy, Sample

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["Beam", "Constraints", "Generated", "Greedy", "Sample"]
