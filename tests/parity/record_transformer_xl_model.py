"""Records whole Transformer-XL models from transformers 4.35, which later releases dropped.

    pip install transformers==4.35.2 tokenizers==0.14.1 huggingface_hub==0.17.3 torch numpy
    python tests/parity/record_transformer_xl_model.py \\
        tests/parity/recorded/transformer_xl_model.npz

Needs an environment of its own. Weights and inputs are drawn anew from their names by the test.
"""

import json
import sys
import zlib

import numpy as np

SIZES = {"d_model": 12, "n_head": 3, "d_head": 4, "d_inner": 20, "n_layer": 2}
RATES = {"dropout": 0.0, "dropatt": 0.0, "vocab_size": 50, "pad_token_id": 0}
CASES = {
    "adaptive": {
        "cutoffs": [10, 20, 35],
        "d_embed": 8,
        "div_val": 2,
        "mem_len": 6,
        "clamp_len": 5,
        "same_length": True,
    },
    "own_projections": {
        "cutoffs": [15],
        "d_embed": 12,
        "div_val": 3,
        "mem_len": 4,
        "clamp_len": -1,
        "same_length": False,
        "proj_share_all_but_first": False,
    },
    "plain": {
        "cutoffs": [],
        "d_embed": 12,
        "div_val": 1,
        "mem_len": 5,
        "clamp_len": 4,
        "same_length": False,
        "untie_r": False,
    },
}
# The segments of a text, one after the other.
SEGMENTS = (7, 3, 9)


def fields(case):
    """A case's config.json."""
    return {"model_type": "transfo-xl"} | SIZES | RATES | CASES[case]


def draw(name, shape, scale=0.4):
    """A tensor of any name, the same wherever it is called."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return (scale * rng.standard_normal(shape)).astype("float32")


def segments(case):
    """The token ids (2, length) of each segment."""
    rng = np.random.default_rng(len(case))
    return [rng.integers(1, RATES["vocab_size"], (2, length)) for length in SEGMENTS]


def their_model(case, **rates):
    """The model of `transformers` of a case, with its weights."""
    import torch
    import transformers

    assert transformers.__version__.startswith("4.35"), transformers.__version__
    config = transformers.TransfoXLConfig(**fields(case) | rates)
    model = transformers.TransfoXLLMHeadModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.tensor(draw(name, tuple(parameter.shape))))
    return model


def main(path):
    import torch

    recorded = {}
    for case in CASES:
        model = their_model(case).eval()
        shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
        recorded[f"{case}/shapes"] = json.dumps(shapes)
        memory = None
        for i, ids in enumerate(map(torch.tensor, segments(case))):
            model.zero_grad()
            found = model(ids, mems=memory, output_hidden_states=True, output_attentions=True)
            memory = found.mems
            pull = draw(f"pull_{i}", tuple(found.prediction_scores.shape))
            (found.prediction_scores * torch.tensor(pull)).sum().backward()
            recorded |= {
                f"{case}/{i}/logits": found.prediction_scores,
                f"{case}/{i}/hidden_states": torch.stack(found.hidden_states),
                f"{case}/{i}/attention_weights": torch.stack(found.attentions),
                f"{case}/{i}/memory": torch.stack(memory).permute(2, 0, 1, 3),
            }
            recorded |= {f"{case}/{i}/by/{name}": p.grad for name, p in model.named_parameters()}
    recorded = {
        name: value if isinstance(value, str) else value.detach().numpy()
        for name, value in recorded.items()
    }
    np.savez_compressed(path, **recorded)


if __name__ == "__main__":
    main(sys.argv[1])
