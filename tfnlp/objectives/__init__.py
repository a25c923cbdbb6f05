"""Pretraining objectives: each builds inputs and targets, and defines a loss."""

from tfnlp.objectives.causal_lm import CausalLM
from tfnlp.objectives.corpus import Corpus
from tfnlp.objectives.corpus_loading import corpus_of, open_corpus, reading_settings
from tfnlp.objectives.masked_lm import MaskedLM
from tfnlp.objectives.masked_positions import logits_at_positions, predict_at_positions
from tfnlp.objectives.masking import MaskedBatches, Masking
from tfnlp.objectives.next_sentence import NextSentence
from tfnlp.objectives.permutation_lm import PermutationLM
from tfnlp.objectives.replaced_tokens import ReplacedTokens
from tfnlp.objectives.segments import Segments
from tfnlp.objectives.sentence_order import SentenceOrder
from tfnlp.objectives.sharded_corpus import ShardedCorpus
from tfnlp.objectives.special_token_template import Frame
from tfnlp.objectives.text_ids import encode_texts, read_texts

__all__ = [
    "CausalLM",
    "Corpus",
    "Frame",
    "MaskedBatches",
    "MaskedLM",
    "Masking",
    "NextSentence",
    "PermutationLM",
    "ReplacedTokens",
    "Segments",
    "SentenceOrder",
    "ShardedCorpus",
    "corpus_of",
    "encode_texts",
    "logits_at_positions",
    "open_corpus",
    "predict_at_positions",
    "read_texts",
    "reading_settings",
]
