"""Text generation: greedy search, beam search and sampling, with cached keys and values."""

from tfnlp.generation.causal_decoder import CausalDecoder
from tfnlp.generation.decoders import decoder_of
from tfnlp.generation.encoder_decoder_cache import EncoderDecoderCache
from tfnlp.generation.generate import Generator, forbidden_ids, generate
from tfnlp.generation.likelihood import LikelihoodScorer
from tfnlp.generation.memory_decoder import MemoryDecoder
from tfnlp.generation.translate import Translator
from tfnlp.searches import Beam, Constraints, Greedy, Sample
from tfnlp.text.continuations import Generated

__all__ = [
    "Beam",
    "CausalDecoder",
    "Constraints",
    "EncoderDecoderCache",
    "Generated",
    "Generator",
    "Greedy",
    "LikelihoodScorer",
    "MemoryDecoder",
    "Sample",
    "Translator",
    "decoder_of",
    "forbidden_ids",
    "generate",
]
