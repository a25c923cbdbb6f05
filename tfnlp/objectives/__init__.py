"""What encoders are pretrained for: each objective makes inputs and targets, and has a loss."""

from tfnlp.objectives.causal_lm import CausalLM
from tfnlp.objectives.corpus import Corpus
from tfnlp.objectives.frame import Frame
from tfnlp.objectives.masked_lm import MaskedBatches, MaskedLM, Masking, predict_at_positions
from tfnlp.objectives.permutation_lm import PermutationLM
from tfnlp.objectives.texts import encode_texts, read_texts

__all__ = [
    "CausalLM",
    "Corpus",
    "Frame",
    "MaskedBatches",
    "MaskedLM",
    "Masking",
    "PermutationLM",
    "encode_texts",
    "predict_at_positions",
    "read_texts",
]
