"""A rebuilt model has the head, outputs and weights of the first."""

import dataclasses

import numpy as np

from distill.compression.rebuild import copy_weights, rebuild
from tfnlp.models import build_model


def test_a_rebuilt_model_has_the_same_outputs(tiny_config, random_inputs):
    config = dataclasses.replace(tiny_config, num_layers=1)
    model = build_model(config, "tagger", 3, hidden_states=True, attention_projections=True)
    copy = rebuild(model, config)
    copy_weights(model, copy)
    assert copy.head == "tagger" and copy.output.keys() == model.output.keys()
    inputs = random_inputs(2, 5, config.vocabulary_size)
    np.testing.assert_array_equal(copy(inputs)["logits"], model(inputs)["logits"])


def test_weights_are_cut_by_path(tiny_config):
    config = dataclasses.replace(tiny_config, num_layers=1)
    model = build_model(config)
    smaller = rebuild(model, dataclasses.replace(config, vocabulary_size=10))
    copy_weights(model, smaller, lambda path, value: value[:10] if "token" in path else value)
    tables = [m.get_layer("embeddings").token_table.numpy() for m in (smaller, model)]
    np.testing.assert_array_equal(tables[0], tables[1][:10])
