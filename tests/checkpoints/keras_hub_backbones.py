"""Small backbones of keras-hub, and a comparison of models with them."""

import json

import keras_hub
import numpy as np

from tests.parity.compare import near

V, LENGTH = 30, 12
SIZES = {"vocabulary_size": V, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
SIZES |= {"intermediate_dim": 24}
PLACES = SIZES | {"max_sequence_length": LENGTH + 4}
ELECTRA = {k: v for k, v in PLACES.items() if k != "vocabulary_size"} | {"vocab_size": V}
# The stem of keras-hub's class, and the arguments of its backbone.
FAMILIES = {
    "bert": ("Bert", PLACES),
    "roberta": ("Roberta", PLACES),
    "distilbert": ("DistilBert", PLACES),
    "albert": ("Albert", PLACES | {"embedding_dim": 6, "num_groups": 2}),
    "albert_wide": ("Albert", PLACES | {"embedding_dim": 16}),
    "electra": ("Electra", ELECTRA | {"embedding_dim": 6}),
    "electra_wide": ("Electra", ELECTRA | {"embedding_dim": 16}),
    "deberta_v3": ("DebertaV3", PLACES | {"bucket_size": 4}),
    "xlnet": ("XLNet", SIZES),
    "gpt2": ("GPT2", PLACES),
}


LINES = [
    "A fine film, not dull at all!",
    "the plot is believable ... and the end isn't.",
    "정말 재미있는 영화예요. 지루하지 않다!",
    "3시간짜리 film을 (두 번) 봤다, 좋다",
]


def backbone(name):
    """A small backbone whose biases and norms are random too, so that a swap would show."""
    stem, sizes = FAMILIES[name]
    model = getattr(keras_hub.models, f"{stem}Backbone")(**sizes)
    return randomized(model)


def randomized(model):
    rng = np.random.default_rng(0)
    for weight in model.weights:
        around = 1 if weight.path.endswith("gamma") else 0
        weight.assign(around + 0.3 * rng.normal(size=weight.shape))
    return model


def make_inputs():
    rng = np.random.default_rng(1)
    mask = np.ones((3, LENGTH), "int32")
    mask[1, 5:] = 0
    return {
        "token_ids": rng.integers(2, V, mask.shape).astype("int32") * mask,
        "segment_ids": rng.integers(0, 2, mask.shape).astype("int32"),
        "padding_mask": mask,
    }


def run_theirs(model, inputs):
    names = {x.name for x in model.inputs}
    inputs = {k: x for k, x in inputs.items() if k in names}
    if "xl_net" in model.name:
        # It mixes up the texts of a batch: it reshapes where it ought to transpose.
        rows = [model({k: x[i : i + 1] for k, x in inputs.items()}) for i in range(3)]
        return {"sequence_output": np.concatenate(rows)}
    outputs = model(inputs)
    return outputs if isinstance(outputs, dict) else {"sequence_output": outputs}


def check_states(ours, theirs, pooled, length=LENGTH):
    inputs = {name: x[:, :length] for name, x in make_inputs().items()}
    if "segment_ids" not in {x.name for x in theirs.inputs}:
        inputs["segment_ids"] *= 0
    real = inputs["padding_mask"][..., None]
    found, expected = ours(inputs), run_theirs(theirs, inputs)
    assert 0.5 < np.abs(expected["sequence_output"]).max() < 20
    near(found["sequence_output"] * real, expected["sequence_output"] * real, 1e-5)
    if pooled:
        near(found["pooled_output"], expected["pooled_output"], 1e-5)


def change_json(path, change):
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))
