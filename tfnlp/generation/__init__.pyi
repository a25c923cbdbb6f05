"""Text generation: greedy search, beam search and sampling, with cached keys and values."""

from .batched_search import find_end_token as find_end_token
from .causal_decoder import CausalDecoder as CausalDecoder
from .decoder_selection import decoder_of as decoder_of
from .encoder_decoder import EncoderDecoderCache as EncoderDecoderCache
from .few_shot_evaluation import PromptedRun as PromptedRun
from .few_shot_evaluation import label_words as label_words
from .few_shot_evaluation import without_texts as without_texts
from .generated_output import print_generated as print_generated
from .generated_output import write_generated as write_generated
from .generator import Generator as Generator
from .generator import forbidden_ids as forbidden_ids
from .generator import generate as generate
from .likelihood import LikelihoodScorer as LikelihoodScorer
from .memory_decoder import MemoryDecoder as MemoryDecoder
from .prompts import Template as Template
from .prompts import draw_shots as draw_shots
from .translation_file import one_line as one_line
from .translation_file import score_translations as score_translations
from .translation_file import translate_file as translate_file
from .translation_file import warn_of_cut as warn_of_cut
from .translator import Translator as Translator
