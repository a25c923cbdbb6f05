"""Calibrated ranges grow with the texts; without ranges or texts there is an error."""

import dataclasses

import keras
import numpy as np
import pytest

from distill.compression.calibration import calibrate, check_calibration, in_columns
from tests.distill.compression.test_file_quantization import LENGTH, TEXTS
from tfnlp.layers import fake_quantize, get_ranges, set_ranges
from tfnlp.models import RecurrentConfig, build_model
from tfnlp.quantization.fake_quantization import in_float
from tfnlp.utils.errors import InputError


@pytest.fixture(scope="module")
def model(tiny_config):
    """A fake-quantised model with ranges."""
    keras.utils.set_random_seed(1)
    model = build_model(dataclasses.replace(tiny_config, num_layers=1), "classifier", 2)
    fake_quantize(model)
    set_ranges(model, {name: [-1.0, 1.0] for name in get_ranges(model)})
    return model


def test_more_texts_widen_the_ranges(model, tokenizer):
    few = get_ranges(calibrate(model, tokenizer.encode(TEXTS[:2], max_length=8)))
    many = get_ranges(calibrate(model, tokenizer.encode(TEXTS, max_length=LENGTH)))
    assert few.keys() == many.keys()
    wider = [np.diff(many[name]) > np.diff(few[name]) for name in few]
    assert np.mean(wider) > 0.9


def test_strings_and_pairs_are_columns():
    assert in_columns(["a", "b"]) == (["a", "b"],)
    assert in_columns([("a", "x"), ("b", "y")]) == (["a", "b"], ["x", "y"])
    for mixed in ([*TEXTS[:16], ("a", "b")], [("a", "b", "x")]):
        with pytest.raises(InputError, match="mixes strings and pairs, or holds tuples"):
            in_columns(mixed)


def test_missing_ranges_and_texts_are_refused(model):
    check_calibration("static_int8", model, None)
    with in_float(model), pytest.raises(InputError, match="holds 0 texts"):
        check_calibration("static_int8", model, None)
    untrained = build_model(model.text_config, "classifier", 2)
    fake_quantize(untrained)
    recurrent = build_model(RecurrentConfig(60, "gru", 1, 16), "classifier", 2)
    for quantization, of, texts, word in (
        ("static_int8", model, 3, "holds 3 texts"),
        ("int8", model, 30, "'int8'"),
        ("static_int8", untrained, 0, "holds 0 texts"),
        ("static_int8", recurrent, 30, "recurrent"),
    ):
        with pytest.raises(InputError, match=word):
            check_calibration(quantization, of, ["x"] * texts)
    check_calibration("int8", recurrent, None)
