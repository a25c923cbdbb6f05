"""Padding, order and company never change an answer."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.small import sizes
from tfnlp.configs import config_by_name
from tfnlp.models import build_model
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding

V = 30
SIZES = sizes(vocabulary_size=V)
FAMILIES = ("roberta", "deberta_v3", "xlnet")
ROWS = st.lists(st.lists(st.integers(5, V - 1), min_size=1, max_size=9), min_size=1, max_size=4)


@functools.cache
def model_of(family, head):
    return build_model(config_by_name(family, **SIZES), head, 3)


def padded(rows, length):
    ids = np.array([row + [0] * (length - len(row)) for row in rows], "int32")
    mask = np.array([[1] * len(r) + [0] * (length - len(r)) for r in rows], "int32")
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}


def answers(model, rows, length):
    inputs = padded(rows, length)
    return np.asarray(model({name: inputs[name] for name in model.input})["logits"])


@pytest.mark.parametrize("head", ["classifier", "tagger"])
@pytest.mark.parametrize("family", FAMILIES)
def test_padding_and_company_never_change_an_answer(family, head):
    model = model_of(family, head)

    @settings(max_examples=8)
    @given(ROWS, st.integers(0, 5), st.randoms())
    def check(rows, surplus, random):
        order = random.sample(range(len(rows)), len(rows))
        together = answers(model, [rows[i] for i in order], max(map(len, rows)) + surplus)
        for place, i in enumerate(order):
            (alone,) = answers(model, [rows[i]], len(rows[i]))
            row = together[place] if head == "classifier" else together[place, : len(rows[i])]
            np.testing.assert_allclose(row, alone, atol=1e-5)

    check()


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=60),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 3),
)
def test_each_example_is_in_one_batch_with_its_label(lengths, batch_size, shuffle, epoch):
    encodings = [Encoding([i + 1] * n, [0] * n) for i, n in enumerate(lengths)]
    labels = list(range(len(lengths)))
    batches = LengthBatches(encodings, batch_size, labels, shuffle=shuffle)
    seen = []
    for inputs, batch_labels in batches.epoch(epoch):
        ids, mask = inputs["token_ids"], inputs["padding_mask"]
        assert len(ids) <= batch_size and ids.shape[1] == mask.sum(1).max()
        assert (ids[:, 0] == batch_labels + 1).all()
        assert (mask.sum(1) == np.array(lengths)[batch_labels]).all()
        assert (ids * mask == ids).all()
        seen += batch_labels.tolist()
    assert sorted(seen) == labels
