"""Training steps with blocks that are kept and blocks that are computed once more.

    python -m benchmarks.gradient_checkpointing

Each step runs in a process of its own, with dropout. Prints the peak memory over the start, the
seconds of a step, and how far loss and gradients are apart, as `benchmarks.models_long` does.

    python -m benchmarks.gradient_checkpointing bert recomputed gradients.npz

is such a step alone.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks.attention_long import memory
from benchmarks.models_long import differences, graph_of_step

FAMILIES = ("bert", "albert", "deberta_v3", "xlnet")
BATCH, LENGTH, STEPS = 16, 256, 3
FIELDS = {
    "num_layers": 8,
    "num_heads": 4,
    "hidden_dim": 256,
    "intermediate_dim": 1024,
    "vocabulary_size": 1000,
}


def compare():
    import numpy as np

    print("family: kept; recomputed; share of the memory; share of the time; apart")
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            ways = ("kept", "recomputed")
            files = [pathlib.Path(folder) / f"{way}.npz" for way in ways]
            figures = [run_alone(family, *each) for each in zip(ways, files, strict=True)]
            apart = differences(*(dict(np.load(file)) for file in files))
        shown = [f"{megabytes:,.0f} MB, {seconds:.2f} s" for megabytes, seconds in figures]
        shown += [f"{b / a:.2f}" for a, b in zip(*figures, strict=True)]
        shown.append("loss {:.1e}, gradients {:.1e}".format(*apart))
        print(f"{family}: {'; '.join(shown)}", flush=True)


def run_alone(family, way, path):
    """The megabytes and seconds of `train_step` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gradient_checkpointing", family, way, str(path)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return tuple(map(float, done.stdout.split()[-2:]))


def train_step(family, way, path):
    """Trains a tagger; its peak memory in MB over the start, and a step's median seconds."""
    import keras
    import numpy as np

    from tfnlp.layers.core.recompute import recompute_blocks
    from tfnlp.models import build_model, config_by_name

    keras.utils.set_random_seed(0)
    model = build_model(config_by_name(family, **FIELDS), "tagger", 9)
    if way == "recomputed":
        recompute_blocks(model)
    rng = np.random.default_rng(0)
    ids = rng.integers(10, 1000, (BATCH, LENGTH)).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    labels = rng.integers(0, 9, (BATCH, LENGTH))
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


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*train_step(*sys.argv[1:]))
    else:
        compare()
