"""Small models of objectives, whose training is compared with itself under other conditions."""

import numpy as np

from tfnlp.models import config_by_name
from tfnlp.objectives import CausalLM, Corpus, PermutationLM, ReplacedTokens, SentenceOrder
from tfnlp.text import WordPieceTokenizer
from tfnlp.training import start_models
from tfnlp.training.experiments.pretraining import Pretrainer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(97, 123)), "##a", "##b"]
LENGTH = 16
SMALL = {
    "vocabulary_size": len(TOKENS),
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 16,
    "initializer_range": 0.2,
}
MEMORY = {"memory_length": 8}
PERMUTATION = PermutationLM(7, predict_one_in=3, max_span=3)
OBJECTIVES = {
    "sentence_order": (SentenceOrder(), "albert", {}),
    "replaced_tokens": (ReplacedTokens(generator_size=1.0), "electra", {}),
    "permutation_lm": (PERMUTATION, "xlnet", MEMORY | {"reuse_length": 7}),
    "causal_lm": (CausalLM(memory=True), "transformer_xl", MEMORY | {"cutoffs": ()}),
}


def small_config(family, fields, num_layers=1):
    config = config_by_name(family, num_layers=num_layers, **SMALL, **fields)
    off = {name: 0.0 for name in vars(config) if "dropout" in name and vars(config)[name]}
    return config_by_name(family, num_layers=num_layers, **SMALL, **fields, **off)


def make_corpus():
    """Documents of sentences in which a letter is mostly followed by the next one."""
    rng = np.random.default_rng(0)

    def sentence():
        first = rng.integers(5, 20)
        return np.where(rng.random(5) < 0.8, first + np.arange(5), rng.integers(5, 31, 5))

    return Corpus.from_documents(
        [[sentence() for _ in range(rng.integers(2, 6))] for _ in range(40)]
    )


def make_pretraining(objective, family, fields, num_layers=1):
    """The trainer of an objective's models, and its batches."""
    size = 4 if fields else 5  # where lanes are remembered, each replica has as many
    batches = objective.batches(make_corpus(), WordPieceTokenizer(TOKENS), size, LENGTH)
    models = start_models(objective, small_config(family, fields, num_layers))
    lanes = {"batch_size": size} if fields else {}
    trained = objective.trained(models if len(models) > 1 else models["model"], **lanes)
    return Pretrainer(objective, trained), batches
