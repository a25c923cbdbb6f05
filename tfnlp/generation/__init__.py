"""Text generation: greedy search, beam search and sampling, with cached keys and values.

Decisions: docs/decisions/generation.md.
"""

from tfnlp.generation.continuations import Generated
from tfnlp.generation.generation_settings import Beam, Constraints, Greedy, Sample
from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
__all__ += ["Beam", "Constraints", "Generated", "Greedy", "Sample"]
