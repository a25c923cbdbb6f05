"""Training steps that are measured each in a process of its own, two ways, and compared."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks.attention_long import memory

STEPS = 3


def compare(module, families, ways):
    """Measures a step of each family both ways, and prints a line for each.

    Args:
        module: of `benchmarks`, a program that prints what `measure` gives for a family, a way
            and the path of a file.
        families: their names.
        ways: two, of which the first is what the second is compared with.
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
    """The megabytes and seconds that `python -m benchmarks.MODULE` prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return tuple(map(float, done.stdout.split()[-2:]))


def measure(model, inputs, labels, path):
    """Trains a tagger; its peak memory in MB over the start, and a step's median seconds.

    The first step's loss and gradients go to `path`.
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
    """How far loss and gradients are apart, relative to `whole`.

    Of gradients it is the largest difference in a variable's over its largest entry, or over a
    hundredth of the largest of all where it has none to speak of (keys' biases have none but for
    rounding).
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
