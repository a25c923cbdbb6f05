"""A batch as `transformers` takes it."""


def torch_inputs(x):
    """A batch's inputs as `transformers` names them."""
    import torch

    names = {
        "token_ids": "input_ids",
        "segment_ids": "token_type_ids",
        "padding_mask": "attention_mask",
    }
    return {names[key]: torch.tensor(value).long() for key, value in x.items()}
