"""Training steps of whole models at 4,096 tokens: full attention, and attention in blocks.

    python -m benchmarks.models_long

Each step runs in a separate process. Prints the peak memory over the start, the seconds of a step,
and the differences of loss and gradients, as `benchmarks.lone_steps` defines them.

    python -m benchmarks.models_long xlnet 512 gradients.npz

runs a single step with blocks of 512; 0 for full attention.
"""

import sys

from benchmarks.lone_steps import compare, measure

# Number of heads of size 32: the most that keep full attention below 8 GB.
FAMILIES = {"bert": 12, "deberta_v3": 8, "xlnet": 8}
LENGTH, BLOCK_SIZE = 4096, 512
FIELDS = {
    "num_layers": 4,
    "vocabulary_size": 1000,
    "max_length": LENGTH,
    # No dropout: attention in blocks would draw other masks.
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


def train_step(family, block_size, path):
    """Return the result of `measure` for a tagger with normal weights of deviation 0.05.

    Attention is computed in blocks of `block_size` tokens, or at once if it is 0.
    """
    import numpy as np

    from tfnlp.models import build_model, config_by_name

    heads = FAMILIES[family]
    config = config_by_name(family, num_heads=heads, hidden_dim=32 * heads, **FIELDS)
    model = build_model(config, "tagger", 9, block_size=block_size or None)
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        if len(weight.shape) > 1:  # biases and norms keep their zeros and ones
            weight.assign(rng.normal(size=weight.shape, scale=0.05))
    ids = rng.integers(10, 1000, (1, LENGTH)).astype("int32")
    segments = (np.arange(LENGTH) > LENGTH // 3).astype("int32")[None]
    inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": np.ones_like(ids)}
    labels = rng.integers(0, 9, (1, LENGTH))
    return measure(model, inputs, labels, path)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*train_step(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
    else:
        print("family: whole; in blocks; share of the memory; share of the time; apart")
        compare("models_long", FAMILIES, (0, BLOCK_SIZE))
