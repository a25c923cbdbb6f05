"""Fingerprints of training inputs, to detect changes."""

import dataclasses
import hashlib
import json

import numpy as np


def content_fingerprint(value):
    """Return the SHA-256 of examples, a config, or lists and dicts of them.

    Args:
        value: JSON values and dataclasses; of any other object only the type counts.
    """
    digest = hashlib.sha256()
    # Encode in pieces, so that the texts of a large file are not copied.
    for piece in json.JSONEncoder(default=_plain).iterencode(value):
        digest.update(piece.encode())
    return digest.hexdigest()


def _plain(value):
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return vars(value) if dataclasses.is_dataclass(value) else type(value).__name__


def model_fingerprint(model):
    """Return the SHA-256 of a model's weights and of its `text_config`, if it has one."""
    config = content_fingerprint(getattr(model, "text_config", None))
    digest = hashlib.sha256(config.encode())
    for weight in model.weights:
        digest.update(f"{weight.dtype}{tuple(weight.shape)}".encode())
        # As bytes, since bfloat16 is not a NumPy type.
        digest.update(np.ascontiguousarray(weight).view("uint8"))
    return digest.hexdigest()
