"""Text generation: greedy search, beam search and sampling, with cached keys and values."""

from tfnlp.generation.causal_decoder import CausalDecoder
from tfnlp.generation.decoder_selection import decoder_of
from tfnlp.generation.encoder_decoder import EncoderDecoderCache
from tfnlp.generation.generator import Generator, forbidden_ids, generate
from tfnlp.generation.likelihood import LikelihoodScorer
from tfnlp.generation.memory_decoder import MemoryDecoder
from tfnlp.generation.translator import Translator
from tfnlp.text.continuations import Generated
from tfnlp.utils.generation_settings import Beam, Constraints, Greedy, Sample

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
