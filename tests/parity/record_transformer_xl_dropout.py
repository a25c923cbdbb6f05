"""Records how much dropout makes Transformer-XL vary, from transformers 4.35.

    pip install transformers==4.35.2 tokenizers==0.14.1 huggingface_hub==0.17.3 torch numpy
    python -m tests.parity.record_transformer_xl_dropout \\
        tests/parity/recorded/transformer_xl_dropout.json

Needs an environment of its own. Weights and inputs are those of `record_transformer_xl_model`.
"""

import json
import sys

import numpy as np

from tests.parity.record_transformer_xl_model import draw, fields, segments, their_model

# Each kind of dropout alone, and both.
RATES = {
    "states": {"dropout": 0.2, "dropatt": 0.0},
    "attention": {"dropout": 0.0, "dropatt": 0.3},
    "both": {"dropout": 0.1, "dropatt": 0.15},
}
CASES = ("adaptive", "plain")
# The dropout of positions is one for all rows of a pass.
ROWS, PASSES = 100, 200


def inputs(case):
    """The token ids of one text, (ROWS, length), and a memory (layers, ROWS, M, D) of it."""
    ids = np.repeat(segments(case)[2][:1], ROWS, axis=0)
    shape = (fields(case)["n_layer"], 1, fields(case)["mem_len"], fields(case)["d_model"])
    return ids, np.repeat(draw("memory", shape, 1.0), ROWS, axis=1)


def variances(passes):
    """The mean variance over draws, the first axis of each pass's (ROWS, ...)."""
    return float(np.concatenate(passes).var(axis=0).mean())


def main(path):
    import torch

    found = {}
    for case in CASES:
        for rates, values in RATES.items():
            model = their_model(case, **values).train()
            torch.manual_seed(0)
            with torch.no_grad():
                ids, memory = inputs(case)
                # Theirs is (M, B, D) for each layer.
                memory = [torch.tensor(layer).transpose(0, 1) for layer in memory]
                passes = [
                    model(torch.tensor(ids), mems=memory, output_hidden_states=True)
                    for _ in range(PASSES)
                ]
            states = [p.hidden_states for p in passes]
            found[f"{case}/{rates}"] = [
                variances([s[i].numpy() for s in states]) for i in range(len(states[0]))
            ]
            print(case, rates, found[f"{case}/{rates}"])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
