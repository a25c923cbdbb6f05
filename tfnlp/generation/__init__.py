"""Text that comes out: greedy, beam search and sampling, with cached keys and values."""

from tfnlp.generation.cache import CausalDecoder
from tfnlp.generation.generate import Generated, Generator, forbidden_ids, generate
from tfnlp.searches import Beam, Constraints, Greedy, Sample

__all__ = [
    "Beam",
    "CausalDecoder",
    "Constraints",
    "Generated",
    "Generator",
    "Greedy",
    "Sample",
    "forbidden_ids",
    "generate",
]
