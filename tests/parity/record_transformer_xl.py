"""Records Transformer-XL's attention from transformers 4.35, which later releases dropped.

    pip install transformers==4.35.2 tokenizers==0.14.1 huggingface_hub==0.17.3 torch numpy
    python tests/parity/record_transformer_xl.py tests/parity/recorded/transformer_xl.npz

Needs an environment of its own. Inputs and weights are drawn anew from their seeds by the test.
"""

import sys

import numpy as np

D, N, H = 12, 3, 4
CASES = [
    # length, memory, masked
    (1, 0, False),
    (1, 5, False),
    (2, 0, False),
    (7, 0, False),
    (7, 5, False),
    (7, 5, True),
    (128, 0, True),
    (128, 16, False),
    (512, 0, False),
    (512, 64, True),
]
CLAMP = 20


def case_inputs(length, memory_length, masked):
    """Weights by name and inputs of one case; the same wherever it is called."""
    rng = np.random.default_rng([length, memory_length, masked])

    def normal(*shape, scale=1.0):
        return (scale * rng.standard_normal(shape)).astype("float32")

    weights = {
        "qkv": normal(D, 3 * N * H, scale=0.4),
        "position": normal(D, N * H, scale=0.4),
        "output": normal(N * H, D, scale=0.4),
        "content_bias": normal(N, H),
        "position_bias": normal(N, H),
    }
    x = normal(2, length, D)
    memory = normal(2, memory_length, D) if memory_length else None
    source = length + memory_length
    seen = np.tile(np.tri(length, source, memory_length, dtype=bool), (2, 1, 1))
    if masked:  # some keys of the second text, never the first
        seen[1, :, 1::3] = False
    return weights, x, memory, seen, normal(2, length, D)


def main(path):
    import torch
    import transformers
    from transformers.models.transfo_xl import modeling_transfo_xl as xl

    assert transformers.__version__.startswith("4.35"), transformers.__version__
    recorded = {}
    for case in CASES:
        weights, x, memory, seen, pull = case_inputs(*case)
        module = xl.RelPartialLearnableMultiHeadAttn(N, D, H, dropout=0.0).eval()
        module.layer_norm = torch.nn.Identity()
        with torch.no_grad():
            module.qkv_net.weight.copy_(torch.tensor(weights["qkv"].T))
            module.r_net.weight.copy_(torch.tensor(weights["position"].T))
            module.o_net.weight.copy_(torch.tensor(weights["output"].T))
            module.r_w_bias.copy_(torch.tensor(weights["content_bias"]))
            module.r_r_bias.copy_(torch.tensor(weights["position_bias"]))
        source = seen.shape[2]
        distances = torch.arange(source - 1, -1, -1.0).clamp(max=CLAMP)
        positions = xl.PositionalEmbedding(D)(distances)
        w = torch.tensor(x).transpose(0, 1).requires_grad_()
        mems = None if memory is None else torch.tensor(memory).transpose(0, 1)
        mask = torch.tensor(~seen).permute(1, 2, 0)
        (output,) = module(w, positions, attn_mask=mask, mems=mems)
        output = (output - w).transpose(0, 1)
        (output * torch.tensor(pull)).sum().backward()
        name = "_".join(str(int(part)) for part in case)
        recorded |= {
            f"{name}/output": output.detach().numpy(),
            f"{name}/by_input": w.grad.transpose(0, 1).numpy(),
            f"{name}/by_qkv": module.qkv_net.weight.grad.numpy().T,
            f"{name}/by_position": module.r_net.weight.grad.numpy().T,
            f"{name}/by_output": module.o_net.weight.grad.numpy().T,
            f"{name}/by_content_bias": module.r_w_bias.grad.numpy(),
            f"{name}/by_position_bias": module.r_r_bias.grad.numpy(),
        }
    np.savez_compressed(path, **recorded)


if __name__ == "__main__":
    main(sys.argv[1])
