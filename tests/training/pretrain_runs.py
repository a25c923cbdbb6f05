"""Pretrains small models on one device and mirrored on two; writes how far apart they end.

    python tests/training/pretrain_runs.py differences.json

A program of its own for `test_pretrain.py`: a process has logical devices only if it asks for them
before TensorFlow starts.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

if __name__ == "__main__":
    CPU = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(CPU, [tf.config.LogicalDeviceConfiguration()] * 2)

from tests.kills import largest_difference
from tfnlp.models import config_by_name
from tfnlp.objectives import (
    CausalLM,
    Corpus,
    PermutationLM,
    ReplacedTokens,
    SentenceOrder,
)
from tfnlp.text import WordPieceTokenizer
from tfnlp.training import make_optimizer, make_strategy, start_models
from tfnlp.training.experiments.pretraining import Pretrainer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(97, 123)), "##a", "##b"]
LENGTH = 16
SMALL = {
    "vocabulary_size": len(TOKENS),
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 16,
    "initializer_range": 0.2,
}
MEMORY = {"memory_length": 8}
OBJECTIVES = {
    "sentence_order": (SentenceOrder(), "albert", {}),
    "replaced_tokens": (ReplacedTokens(generator_size=1.0), "electra", {}),
    "permutation_lm": (
        PermutationLM(7, predict_one_in=3, max_span=3),
        "xlnet",
        MEMORY | {"reuse_length": 7},
    ),
    "causal_lm": (CausalLM(memory=True), "transformer_xl", MEMORY | {"cutoffs": ()}),
}
# Masked tokens and next sentences are trained as the order of sentences is, and causal LMs with a
# memory as permutation LMs. The number of parts that the two devices read a batch in.
COMPARED = {"sentence_order": 2, "replaced_tokens": 1, "permutation_lm": 1}
STEPS = 50


def small_config(family, fields):
    config = config_by_name(family, **SMALL, **fields)
    off = {name: 0.0 for name in vars(config) if "dropout" in name and vars(config)[name]}
    return config_by_name(family, **SMALL, **fields, **off)


def make_corpus():
    """Documents of sentences in which a letter is mostly followed by the next one."""
    rng = np.random.default_rng(0)

    def sentence():
        first = rng.integers(5, 20)
        return np.where(rng.random(5) < 0.8, first + np.arange(5), rng.integers(5, 31, 5))

    return Corpus.from_documents(
        [[sentence() for _ in range(rng.integers(2, 6))] for _ in range(40)]
    )


def train(strategy, name, parts=1):
    """The weights after some steps, how far they moved, and what was logged."""
    objective, family, fields = OBJECTIVES[name]
    tokenizer = WordPieceTokenizer(TOKENS)
    # Where lanes are remembered, each replica has as many.
    size = 4 if fields else 5
    batches = objective.batches(make_corpus(), tokenizer, size, LENGTH)
    keras.utils.set_random_seed(0)
    with strategy.scope():
        models = start_models(objective, small_config(family, fields))
        lanes = {"batch_size": size} if fields else {}
        trained = objective.trained(models if len(models) > 1 else models["model"], **lanes)
        pretrainer = Pretrainer(objective, trained)
        optimizer = make_optimizer(pretrainer, 2e-3, weight_decay=0.1)
        # Adam divides a gradient by its size: of one that is 0 but for rounding it makes a step.
        optimizer.epsilon = 1e-3
        pretrainer.accumulation_steps = parts
        pretrainer.compile(optimizer, jit_compile=False)
    before = [v.numpy() for v in pretrainer.trainable_variables]
    logs = {}
    for epoch in range(-(-STEPS // len(batches))):
        data = batches.dataset(lambda epoch=epoch: epoch)
        history = pretrainer.fit(data, verbose=0, shuffle=False).history
        logs = {key: values[-1] for key, values in history.items()}
    after = [v.numpy() for v in pretrainer.trainable_variables]
    return after, largest_difference(before, after), logs, pretrainer.skip_reason()


def main():
    strategies = make_strategy("one_device"), make_strategy("mirrored")
    found = {"replicas": strategies[1].num_replicas_in_sync}
    for name, parts in COMPARED.items():
        one, moved, logs, why = train(strategies[0], name)
        other, _, others, also = train(strategies[1], name, parts)
        assert logs.keys() == others.keys() and why is also is None
        found[name] = {
            "difference": largest_difference(one, other),
            "moved": moved,
            "logs": {key: [logs[key], others[key]] for key in logs},
        }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(found, file, default=float)


if __name__ == "__main__":
    main()
