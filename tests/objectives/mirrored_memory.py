"""Trains a Transformer-XL with memory on one device and on two; writes how far apart they end.

    python tests/objectives/mirrored_memory.py differences.json

A program of its own for `test_causal_lm.py`, as a process has logical devices only if it asks for
them before TensorFlow starts.
"""

import dataclasses
import json
import sys

import keras
import numpy as np
import tensorflow as tf

CPU = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(CPU, [tf.config.LogicalDeviceConfiguration()] * 2)

from tests.objectives.test_lane_memory import XL, compiled  # noqa: E402
from tests.objectives.test_token_stream import Tokens, large_corpus  # noqa: E402
from tfnlp.models import build_model  # noqa: E402
from tfnlp.objectives import CausalLM  # noqa: E402
from tfnlp.training import make_strategy  # noqa: E402


def train(strategy):
    """The variables after training, and the losses on dev."""
    objective = CausalLM(memory=True)
    batches = objective.batches(large_corpus(documents=20), Tokens(), 4, 6, seed=3)
    dev = objective.batches(large_corpus(7), Tokens(), 4, 6, shuffle=False)
    with make_strategy(strategy).scope():
        keras.utils.set_random_seed(0)
        config = dataclasses.replace(XL, num_layers=1)
        model = build_model(config, "causal_lm", memory=True)
        # Adam would make steps of gradients that are nothing but rounding.
        optimizer = keras.optimizers.SGD(0.1)
        trainer = compiled(objective.trained(model, batch_size=4), objective, optimizer)
    losses = []
    for skip in (len(batches) // 2, 0):  # a dev pass in between
        trainer.fit(batches.dataset(skip=skip), verbose=0, shuffle=False)
        losses.append(trainer.evaluate(dev.dataset(), verbose=0))
    return {v.path: np.asarray(v) for v in trainer.trained.variables}, losses


def main(path):
    one, two = train("one_device"), train("mirrored")
    differences = {
        name: float(np.abs(a - b).max())
        for (name, a), b in zip(one[0].items(), two[0].values(), strict=True)
    }
    differences["dev"] = float(np.abs(np.subtract(one[1], two[1])).max())
    with open(path, "w") as file:
        json.dump(differences, file)


if __name__ == "__main__":
    main(sys.argv[1])
