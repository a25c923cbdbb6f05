"""What a Keras model gives for one text at a time, and what a file holds."""

import numpy as np
from ai_edge_litert import schema_py_generated as schema


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def keras_outputs(model, encoding, real=1):
    """{name: array without batch} of the logits and states."""
    ids, segment_ids = np.array([encoding.token_ids]), np.array([encoding.segment_ids])
    inputs = {"token_ids": ids, "segment_ids": segment_ids, "padding_mask": 0 * ids + real}
    outputs = model(inputs).items()
    return {k: v[0].numpy() for k, v in outputs if "logits" in k or k == "sequence_output"}


def keras_probabilities(model, tokenizer, texts, max_length=None):
    encodings = tokenizer.encode(texts, max_length=max_length)
    return [softmax(keras_outputs(model, encoding)["logits"]) for encoding in encodings]


def tree_of(path):
    """The flatbuffer of a .tflite as objects."""
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes()))


def constants_of(path):
    """The bytes of a file's constants."""
    return sum(len(b.data) for b in tree_of(path).buffers if b.data is not None)


def padded_inputs(encoding, length, padding=0):
    """The inputs of a file for a text with padding behind it, (1, length): some id, and mask 0."""
    real = len(encoding.token_ids)
    ids = np.full((1, length), padding, "int32")
    segment_ids, mask = np.zeros_like(ids), np.zeros_like(ids)
    ids[0, :real], segment_ids[0, :real] = encoding.token_ids, encoding.segment_ids
    mask[0, :real] = 1
    return {"ids": ids, "mask": mask, "segment_ids": segment_ids}
