"""What a training was made from, in few letters: to notice when it has changed."""

import dataclasses
import hashlib
import json

import numpy as np


def content_fingerprint(value):
    """The SHA-256 of examples, a config, or lists and dicts of such.

    Args:
        value: of what JSON can say and of dataclasses; of another object only its type counts.
    """
    digest = hashlib.sha256()
    # In pieces: the texts of a large file are not held once more.
    for piece in json.JSONEncoder(default=_plain).iterencode(value):
        digest.update(piece.encode())
    return digest.hexdigest()


def _plain(value):
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return vars(value) if dataclasses.is_dataclass(value) else type(value).__name__


def model_fingerprint(model):
    """The SHA-256 of a model's weights and, where it has one, its `text_config`."""
    config = content_fingerprint(getattr(model, "text_config", None))
    digest = hashlib.sha256(config.encode())
    for weight in model.weights:
        digest.update(f"{weight.dtype}{tuple(weight.shape)}".encode())
        # As bytes: bfloat16 is none of NumPy's own types.
        digest.update(np.ascontiguousarray(weight).view("uint8"))
    return digest.hexdigest()
