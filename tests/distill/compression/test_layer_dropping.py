"""Dropped layers leave the others, and their quantisation ranges, as they were."""

import numpy as np
import pytest

from distill.compression.layer_dropping import drop_layers
from tests.distill.compression.test_structured_pruning import make_model, set_fake_ranges
from tfnlp.layers import get_ranges
from tfnlp.models import BertConfig, RecurrentConfig, build_model
from tfnlp.utils.errors import InputError


def test_dropped_layers_leave_the_others_as_they_were(random_inputs):
    model = make_model(BertConfig, num_layers=3)
    inputs = random_inputs(2, 7, 23)
    smaller = drop_layers(model, 2, [0, 2])
    layer = model.get_layer("encoder_1").count_params()
    assert model.count_params() - smaller.count_params() == layer
    for ours, theirs in (("encoder_0", "encoder_0"), ("encoder_1", "encoder_2")):
        expected = model.get_layer(theirs).get_weights()
        for a, b in zip(smaller.get_layer(ours).get_weights(), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert smaller(inputs)["logits"].shape == (2, 2)
    with pytest.raises(InputError, match="names a layer twice"):
        drop_layers(model, 2, [1, 1])
    with pytest.raises(InputError, match="names layer 3, but"):
        drop_layers(model, 2, [0, 3])
    assert drop_layers(model, 1).get_layer("encoder_0").count_params() == layer


def test_the_remaining_layers_keep_their_quantisation_ranges():
    model = make_model(BertConfig, num_layers=3)
    ranges = set_fake_ranges(model)
    smaller = get_ranges(drop_layers(model, 2, [0, 2]))
    assert len(smaller) == len(ranges) - sum(name.startswith("encoder_1/") for name in ranges)
    for name, limits in smaller.items():
        assert limits == ranges[name.replace("encoder_1/", "encoder_2/")]


def test_a_recurrent_model_is_refused():
    recurrent = RecurrentConfig(23, "gru", 2, 16)
    with pytest.raises(InputError, match="The teacher is a recurrent network"):
        drop_layers(build_model(recurrent, "classifier", 2), 1)
