"""Text generation: greedy search, beam search and sampling, with cached keys and values."""

from .batched_search import find_end_token as find_end_token
from .continuations import forbidden_ids as forbidden_ids
from .decoder_selection import decoder_of as decoder_of
from .generator import Generator as Generator
from .key_value_cache import CausalDecoder as CausalDecoder
from .key_value_cache import EncoderDecoderCache as EncoderDecoderCache
from .likelihood import LikelihoodScorer as LikelihoodScorer
from .memory_decoder import MemoryDecoder as MemoryDecoder
from .output_files import one_line as one_line
from .output_files import print_generated as print_generated
from .output_files import score_translations as score_translations
from .output_files import translate_file as translate_file
from .output_files import warn_of_cut as warn_of_cut
from .output_files import write_generated as write_generated
from .prompts import PromptedRun as PromptedRun
from .prompts import Template as Template
from .prompts import draw_shots as draw_shots
from .prompts import label_words as label_words
from .prompts import without_texts as without_texts
from .translator import Translator as Translator
