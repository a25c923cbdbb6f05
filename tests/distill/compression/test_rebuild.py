"""A rebuilt model has the head, outputs and cut weights of the first."""

import dataclasses

import numpy as np

from distill.compression.rebuild import rebuild
from tfnlp.models import build_model


def test_a_rebuilt_model_has_the_same_outputs(one_layer, random_inputs):
    model = build_model(one_layer, "tagger", 3, hidden_states=True, attention_projections=True)
    copy = rebuild(model, one_layer, lambda weight, value: value)
    assert copy.head == "tagger" and copy.output.keys() == model.output.keys()
    inputs = random_inputs(2, 5, one_layer.vocabulary_size)
    np.testing.assert_array_equal(copy(inputs)["logits"], model(inputs)["logits"])


def test_weights_are_cut_by_path(one_layer):
    model, fewer = build_model(one_layer), dataclasses.replace(one_layer, vocabulary_size=10)
    smaller = rebuild(model, fewer, lambda w, value: value[:10] if "token" in w.path else value)
    tables = [m.get_layer("embeddings").token_table.numpy() for m in (smaller, model)]
    np.testing.assert_array_equal(tables[0], tables[1][:10])
