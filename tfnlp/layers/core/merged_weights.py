"""Weights of a model with LoRA adapters."""

from keras import ops


def lora_layers(model):
    """Return the layers whose weights Keras' `enable_lora` adapts, a list."""
    return [layer for layer in model._flatten_layers() if getattr(layer, "lora_enabled", False)]


def merged_weights(model):
    """Return {path: value} of a model's weights, LoRA adapters merged.

    Hu et al. 2021, 'LoRA: Low-Rank Adaptation of Large Language Models', eq. 3: an adapted weight
    is W + alpha / r * A . B, of A (D, r) and B (r, units), which are not in the result.

    Args:
        model: a `keras.Model`, or a layer.
    """
    weights = {weight.path: weight for weight in model.weights}
    for layer in lora_layers(model):
        kind = "kernel" if hasattr(layer, "lora_kernel_a") else "embeddings"
        a, b = (getattr(layer, f"lora_{kind}_{factor}") for factor in "ab")
        weight = getattr(layer, f"_{kind}")
        del weights[a.path], weights[b.path]
        change = layer.lora_alpha / layer.lora_rank * ops.matmul(a, b)
        # Not Keras' `kernel`, which is of the compute dtype: half precision would round it.
        weights[weight.path] = ops.cast(weight + change, weight.dtype)
    return weights
