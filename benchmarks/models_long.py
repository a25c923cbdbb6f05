"""Training steps of whole models at 4,096 tokens: attention to all at once, and in blocks.

    python -m benchmarks.models_long

Each step runs in a process of its own. Prints the peak memory over the start, the seconds of a
step, and how far loss and gradients are apart: the largest difference in a variable's gradient
over the gradient's largest entry, or over a hundredth of the largest of all where it has none to
speak of (keys' biases have none but for rounding).

    python -m benchmarks.models_long xlnet 512 gradients.npz

is such a step alone, with blocks of 512; 0 for none.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks.attention_long import memory

# Heads, of 32 each: as many as keep plain attention below 8 GB.
FAMILIES = {"bert": 12, "deberta_v3": 8, "xlnet": 8}
LENGTH, BLOCK_SIZE, STEPS = 4096, 512, 3
FIELDS = {
    "num_layers": 4,
    "vocabulary_size": 1000,
    "max_length": LENGTH,
    # Without dropout, of which blocks draw other numbers.
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


def compare():
    import numpy as np

    print("family: whole; in blocks; share of the memory; share of the time; apart")
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("whole.npz", "blocks.npz")]
            sizes = 0, BLOCK_SIZE
            figures = [run_alone(family, *each) for each in zip(sizes, files, strict=True)]
            apart = differences(*(dict(np.load(file)) for file in files))
        shown = [f"{megabytes:,.0f} MB, {seconds:.2f} s" for megabytes, seconds in figures]
        shown += [f"{b / a:.2f}" for a, b in zip(*figures, strict=True)]
        shown.append("loss {:.1e}, gradients {:.1e}".format(*apart))
        print(f"{family}: {'; '.join(shown)}", flush=True)


def run_alone(family, block_size, path):
    """The megabytes and seconds of `train_step` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.models_long", family, str(block_size), str(path)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return tuple(map(float, done.stdout.split()[-2:]))


def train_step(family, block_size, path):
    """Trains a tagger; its peak memory in MB over the start, and a step's median seconds.

    The first step's loss and gradients go to `path`.
    """
    import keras
    import numpy as np

    from tfnlp.models import build_model, config_by_name

    heads = FAMILIES[family]
    config = config_by_name(family, num_heads=heads, hidden_dim=32 * heads, **FIELDS)
    model = build_model(config, "tagger", 9, block_size=block_size or None)
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        if len(weight.shape) > 1:  # biases and norms have their zeros and ones
            weight.assign(rng.normal(size=weight.shape, scale=0.05))
    ids = rng.integers(10, 1000, (1, LENGTH)).astype("int32")
    segments = (np.arange(LENGTH) > LENGTH // 3).astype("int32")[None]
    inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": np.ones_like(ids)}
    labels = rng.integers(0, 9, (1, LENGTH))
    optimizer = keras.optimizers.AdamW(1e-4)
    optimizer.build(model.trainable_variables)
    step = graph_of_step(model, optimizer, inputs, labels)
    before, seconds, first = memory("VmRSS"), [], None
    for _ in range(STEPS):
        start = time.perf_counter()
        found = step()
        seconds.append(time.perf_counter() - start)
        first = found if first is None else first
    peak = memory("VmHWM")
    np.savez(path, *[np.asarray(x) for x in first])
    return (peak - before) / 1e3, float(np.median(seconds[1:]))


def graph_of_step(model, optimizer, inputs, labels):
    """A step as a `tf.function`: it gives the loss, then the gradients."""
    import keras
    import tensorflow as tf

    variables = model.trainable_variables

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)["logits"]
            losses = keras.losses.sparse_categorical_crossentropy(labels, logits, True)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, [v.value for v in variables])
        gradients = [tf.convert_to_tensor(g) for g in gradients]
        optimizer.apply(gradients, variables)
        return loss, *gradients

    return step


def differences(whole, blocks):
    """How far loss and gradients are apart, relative to `whole`; the docstring above says how."""
    import numpy as np

    loss, *gradients = whole.values()
    found_loss, *found = blocks.values()
    largest = max(np.abs(g).max() for g in gradients)
    apart = [
        np.abs(a - b).max() / max(np.abs(b).max(), largest / 100)
        for a, b in zip(found, gradients, strict=True)
    ]
    return abs(found_loss - loss) / abs(loss), max(apart)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*train_step(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
    else:
        compare()
