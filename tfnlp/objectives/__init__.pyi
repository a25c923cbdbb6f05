"""Pretraining objectives: each builds inputs and targets, and defines a loss."""

from .bidirectional_lm import BidirectionalLM as BidirectionalLM
from .causal_lm import CausalLM as CausalLM
from .corpus import Corpus as Corpus
from .corpus_loading import corpus_of as corpus_of
from .corpus_loading import open_corpus as open_corpus
from .corpus_loading import reading_settings as reading_settings
from .lm_evaluation import check_evaluation as check_evaluation
from .lm_evaluation import evaluate_causal_lm as evaluate_causal_lm
from .lm_evaluation import evaluate_masked_lm as evaluate_masked_lm
from .lm_evaluation import figures_table as figures_table
from .masked_lm import MaskedLM as MaskedLM
from .masked_positions import logits_at_positions as logits_at_positions
from .masked_positions import predict_at_positions as predict_at_positions
from .masking import MaskedBatches as MaskedBatches
from .masking import Masking as Masking
from .objective import Objective as Objective
from .permutation_lm import PermutationLM as PermutationLM
from .replaced_tokens import ReplacedTokens as ReplacedTokens
from .segments import Segments as Segments
from .sentence_pairs import NextSentence as NextSentence
from .sentence_pairs import SentenceOrder as SentenceOrder
from .sharded_corpus import ShardedCorpus as ShardedCorpus
from .special_token_template import SpecialTokenTemplate as SpecialTokenTemplate
from .special_token_template import plain_ids as plain_ids
from .text_ids import encode_texts as encode_texts
from .text_ids import read_texts as read_texts
