"""Memory and time of training steps with and without gradient checkpointing.

    python -m benchmarks.gradient_checkpointing

Each step runs in a separate process, with dropout. Prints the peak memory over the start, the
seconds of a step, and the differences of loss and gradients, as `benchmarks.lone_steps` defines
them.

    python -m benchmarks.gradient_checkpointing bert recomputed gradients.npz

runs a single step.
"""

import sys

from benchmarks.lone_steps import compare, measure

FAMILIES = ("bert", "albert", "deberta_v3", "xlnet")
BATCH, LENGTH = 16, 256
FIELDS = {
    "num_layers": 8,
    "num_heads": 4,
    "hidden_dim": 256,
    "intermediate_dim": 1024,
    "vocabulary_size": 1000,
}


def train_step(family, way, path):
    """Return the result of `measure` for a tagger; `way` is "kept" or "recomputed"."""
    import keras
    import numpy as np

    from tfnlp.functional.recompute import recompute_blocks
    from tfnlp.models import build_model, config_by_name

    keras.utils.set_random_seed(0)
    model = build_model(config_by_name(family, **FIELDS), "tagger", 9)
    if way == "recomputed":
        recompute_blocks(model)
    rng = np.random.default_rng(0)
    ids = rng.integers(10, 1000, (BATCH, LENGTH)).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    labels = rng.integers(0, 9, (BATCH, LENGTH))
    return measure(model, inputs, labels, path)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*train_step(*sys.argv[1:]))
    else:
        print("family: kept; recomputed; share of the memory; share of the time; apart")
        compare("gradient_checkpointing", FAMILIES, ("kept", "recomputed"))
