"""Run by test_layouts in a process of its own: training on four simulated devices of JAX."""

import json
import re

import jax
import keras
import numpy as np

from tfnlp.configs import config_by_name
from tfnlp.models import build_model, get_layout_map
from tfnlp.utils.errors import InputError

SIZES = {"num_layers": 1, "num_heads": 4, "hidden_dim": 32, "intermediate_dim": 64}
VOCABULARY, BATCH, LENGTH = 40, 8, 10
FAMILIES = {"bert": "masked_lm", "gpt": "causal_lm", "deberta_v3": "masked_lm"}
OTHERS = ("albert", "gpt2", "deberta", "xlnet", "transformer_xl", "transformer")


def model_of(family, head=None):
    return build_model(config_by_name(family, vocabulary_size=VOCABULARY, **SIZES), head)


def distribution_of(arrangement):
    """Return the distribution of "one" device, or of four, 2 x 2 where the model is split."""
    devices = keras.distribution.list_devices()
    assert len(devices) == 4
    if arrangement in ("one", "data"):
        return keras.distribution.DataParallel(devices=devices[: 1 if arrangement == "one" else 4])
    mesh = keras.distribution.DeviceMesh((2, 2), ("batch", "model"))
    data = "batch" if arrangement == "model and data" else None
    layout_map = get_layout_map(mesh, data_parallel_dim_name=data)
    return keras.distribution.ModelParallel(layout_map=layout_map, batch_dim_name="batch")


def train(family, arrangement, steps):
    """Return the losses of steps, and the share of each variable that a device holds."""
    keras.utils.set_random_seed(0)
    keras.backend.clear_session()
    rng = np.random.default_rng(0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    losses = []
    with distribution_of(arrangement).scope():
        model = model_of(family, FAMILIES[family])
        model.compile(keras.optimizers.AdamW(1e-2), loss={"logits": loss})
        model.optimizer.build(model.trainable_variables)
        for _ in range(steps):
            ids = rng.integers(5, VOCABULARY, (BATCH, LENGTH)).astype("int32")
            mask = (np.arange(LENGTH) < rng.integers(1, LENGTH, (BATCH, 1))).astype("int32")
            inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
            losses.append(float(model.train_on_batch(inputs, {"logits": ids})))
        variables = (*model.trainable_variables, *model.optimizer.variables)
        return losses, {v.path: piece(v.value) for v in variables}


def piece(value):
    """Return the share of an array that the first device holds."""
    return value.addressable_shards[0].data.size / value.size


def sums_over_devices(family):
    """Return the operations between devices in the forward pass of an encoder of one block."""
    keras.backend.clear_session()
    distribution = distribution_of("model")
    with distribution.scope():
        model, ids = model_of(family), np.ones((BATCH, LENGTH), "int32")
        layout = distribution.get_data_layout(ids.shape).backend_layout
        names = ("token_ids", "segment_ids", "padding_mask")
        inputs = {name: jax.device_put(ids, layout) for name in names}
        groups = (model.trainable_variables, model.non_trainable_variables)
        states = [[v.value for v in group] for group in groups]

        def run(trained, others, inputs):
            return model.stateless_call(trained, others, inputs)[0]["sequence_output"]

        text = jax.jit(run).lower(*states, inputs).compile().as_text()
    return re.findall(r" (all-\w+|collective-\w+|reduce-scatter)\(", text)


def whole_matrices(family):
    """Return the matrices of a model's blocks that stay whole on each device."""
    layout_map = get_layout_map(keras.distribution.DeviceMesh((2, 2), ("batch", "model")))
    head = "sequence_to_sequence" if family == "transformer" else None
    paths = [v.path for v in model_of(family, head).variables if v.path.endswith("kernel")]
    return [path for path in paths if "coder" in path and layout_map[path] is None]


def main():
    one, _ = train("bert", "one", 4)
    four, pieces = train("bert", "model and data", 4)
    found = {
        "losses": {"one": one, "four": four},
        "pieces": {family: train(family, "model", 0)[1] for family in FAMILIES},
        "pieces of data": train("bert", "data", 0)[1],
        "pieces of both": pieces,
        "sums": sums_over_devices("bert"),
        "whole": {family: whole_matrices(family) for family in OTHERS},
    }
    try:
        get_layout_map(keras.distribution.DeviceMesh((4,), ("batch",)))
    except InputError as e:
        found["refusal"] = str(e)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
