"""Conversion of batches for `transformers`."""


def torch_inputs(x):
    """Convert a batch's inputs to int64 torch tensors under the names of `transformers`."""
    import torch

    names = {
        "token_ids": "input_ids",
        "segment_ids": "token_type_ids",
        "padding_mask": "attention_mask",
    }
    return {names[key]: torch.tensor(value).long() for key, value in x.items()}
