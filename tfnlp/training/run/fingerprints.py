"""Fingerprints of training inputs, to detect changes."""

import dataclasses
import hashlib
import json

import numpy as np


def content_fingerprint(value):
    """Return the SHA-256 of examples, a config, or lists and dicts of them.

    Args:
        value: JSON values and dataclasses; of any other object only the type counts. A field of a
            dataclass that has its default does not count: a field that a later version adds
            leaves the fingerprints of earlier ones valid.
    """
    digest = hashlib.sha256()
    # Encode in pieces, so that the texts of a large file are not copied.
    for piece in json.JSONEncoder(default=_plain).iterencode(value):
        digest.update(piece.encode())
    return digest.hexdigest()


def _plain(value):
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if not dataclasses.is_dataclass(value):
        return type(value).__name__
    defaults = {field.name: field.default for field in dataclasses.fields(value)}
    changed = {k: v for k, v in vars(value).items() if not _is_default(v, defaults.get(k))}
    return {"class": type(value).__name__, **changed}


def _is_default(value, default):
    return type(value) is type(default) and not isinstance(value, np.ndarray) and value == default


def model_fingerprint(model):
    """Return the SHA-256 of a model's weights and of its `text_config`, if it has one."""
    config = content_fingerprint(getattr(model, "text_config", None))
    digest = hashlib.sha256(config.encode())
    for weight in model.weights:
        add_array(digest, np.asarray(weight))
    return digest.hexdigest()


def add_array(digest, array):
    """Add an array's type, shape and content to a hash of `hashlib`."""
    digest.update(f"{array.dtype}{array.shape}".encode())
    # As bytes, since bfloat16 is not a NumPy type.
    digest.update(np.ascontiguousarray(array).view("uint8"))
