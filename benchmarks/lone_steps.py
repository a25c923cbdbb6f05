"""Training steps measured in separate processes, in two ways, and compared."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks.attention_long import memory

STEPS = 3


def compare(module, families, ways):
    """Measure a step of each family in both ways, and print a line for each family.

    Args:
        module: a program in `benchmarks` that takes a family, a way and a file's path, and prints
            the result of `measure`.
        families: names of families.
        ways: two ways; the second is compared with the first.
    """
    import numpy as np

    for family in families:
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / f"{way}.npz" for way in ways]
            both = zip(ways, files, strict=True)
            figures = [run_alone(module, family, *each) for each in both]
            apart = differences(*(dict(np.load(file)) for file in files))
        shown = [f"{megabytes:,.0f} MB, {seconds:.2f} s" for megabytes, seconds in figures]
        shown += [f"{b / a:.2f}" for a, b in zip(*figures, strict=True)]
        shown.append("loss {:.1e}, gradients {:.1e}".format(*apart))
        print(f"{family}: {'; '.join(shown)}", flush=True)


def run_alone(module, *arguments):
    """Run `python -m benchmarks.MODULE`; return the megabytes and seconds that it prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return tuple(map(float, done.stdout.split()[-2:]))


def measure(model, inputs, labels, path):
    """Train a tagger for a few steps, and save the first loss and gradients to `path`.

    Returns:
        The peak memory over the start in MB, and a step's median seconds.
    """
    import keras
    import numpy as np

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
    """Return a training step as a `tf.function` that returns the loss and the gradients."""
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
    """Return the differences of loss and gradients, relative to `whole`.

    The difference of a variable's gradient is its largest absolute difference over its largest
    entry. The divisor is at least a hundredth of the largest entry of all gradients, since some
    gradients (those of the keys' biases) are zero but for rounding.
    """
    import numpy as np

    loss, *gradients = whole.values()
    found_loss, *found = blocks.values()
    largest = max(np.abs(g).max() for g in gradients)
    apart = [
        np.abs(a - b).max() / max(np.abs(b).max(), largest / 100)
        for a, b in zip(found, gradients, strict=True)
    ]
    return abs(found_loss - loss) / abs(loss), max(apart)
