"""Fingerprints of batches, examples and models."""

import dataclasses
import re

import keras
import numpy as np

from tfnlp.text import LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.training.run.fingerprints import content_fingerprint, model_fingerprint


def two_layers(names, order=(0, 1)):
    """A model of two layers of one shape, made in an order."""
    inputs = keras.Input((3,))
    layers = {i: keras.layers.Dense(3, name=names[i]) for i in order}
    outputs = [layers[i](inputs) for i in order]
    model = keras.Model(inputs, keras.layers.Add()(outputs))
    model.compile(keras.optimizers.Adam(), "mse")
    return model


def test_fingerprints_tell_apart_all_that_decides_the_batches():
    def encodings(*rows):
        return [Encoding(ids, segments, truncated=False) for ids, segments in rows]

    one = encodings(([1, 2], [0, 0]), ([3], [0]))
    made = [
        LengthBatches(one, 2),
        LengthBatches(one, 1),
        LengthBatches(one, 2, shuffle=True),
        LengthBatches(one, 2, seed=1),
        LengthBatches(one, 2, pad_token_id=1),
        LengthBatches(encodings(([1], [0]), ([2, 3], [0, 0])), 2),
        LengthBatches(encodings(([1, 2], [0, 1]), ([3], [0])), 2),
        LengthBatches([[e] for e in one], 2),
        LengthBatches(one, 2, [0, 1]),
        LengthBatches(one, 2, [1, 0]),
        LengthBatches(one, 2, [0.0, 1.0]),
        LengthBatches(one, 2, [[0, 0], [1]]),
        LengthBatches(one, 2, [[0, 1], [1]]),
    ]
    assert len({batches.fingerprint() for batches in made}) == len(made)
    again = LengthBatches(encodings(([1, 2], [0, 0]), ([3], [0])), 2, [0, 1])
    assert again.fingerprint() == made[8].fingerprint()
    assert len({batches.inputs_fingerprint() for batches in made}) == 4


FIELDS = [("size", int), ("rate", float, dataclasses.field(default=0.0))]


def test_fingerprints_of_examples_and_models(tiny_config):
    values = [None, "a", ["a"], {"a": 1}, {"a": 1.0}, ["a", "b"], ["ab"], tiny_config, "\ud800"]
    values += [dataclasses.replace(tiny_config, dropout=0.2), np.array([1, 2])]
    found = [content_fingerprint(value) for value in values]
    assert len(set(found)) == len(values)
    assert all(re.fullmatch("[0-9a-f]{64}", f) for f in found)
    arrays = [np.array([1, 2]), np.array([1, 3]), np.float32(1), np.float32(2)]
    assert len({content_fingerprint([array]) for array in arrays}) == len(arrays)
    assert content_fingerprint(object()) == content_fingerprint(object())
    assert content_fingerprint(dataclasses.replace(tiny_config)) == found[7]
    # A field that a later version adds, until it is set; the class counts.
    versions = [dataclasses.make_dataclass("Config", fields) for fields in (FIELDS[:1], FIELDS)]
    first, second = (content_fingerprint(version(3)) for version in versions)
    assert first == second != content_fingerprint(versions[1](3, 0.5))
    assert first != content_fingerprint(dataclasses.make_dataclass("Other", FIELDS[:1])(3))
    model = two_layers("ab")
    before = model_fingerprint(model)
    assert model_fingerprint(model) == before
    model.layers[1].bias.assign([0.0, 0.0, 1e-7])
    assert model_fingerprint(model) != before
