"""Convolutional networks and bags: padding, static channels, norms."""

import numpy as np
import pytest

from tests.models.recurrent_witness import weights_of
from tests.models.test_recurrent import inputs_of, with_random_biases
from tfnlp.models import BagConfig, TextCnnConfig, build_model

CNN = TextCnnConfig(
    60, 8, num_filters=5, channels="multichannel", initializer_range=0.5, max_norm=0.4
)
BAG = BagConfig(60, 8, word_ngrams=3, buckets=40, initializer_range=0.5)
CASES = {"multichannel": CNN, "bag": BAG}


@pytest.mark.parametrize("name", CASES)
def test_padding_changes_nothing(name):
    config = CASES[name]
    model = with_random_biases(build_model(config, "classifier", 3))
    ids, mask = np.random.default_rng(0).integers(1, 60, (4, 7)), np.ones((4, 7))
    mask[1, 4:] = 0  # at the right
    mask[2, :2] = 0  # at the left
    mask[3, 1:] = 0  # one token, fewer than the narrowest window has
    outputs = model(inputs_of(ids, mask))
    for row in range(4):
        alone = model(inputs_of(ids[row : row + 1, mask[row] == 1]))
        for key in ("pooled_output", "logits"):
            np.testing.assert_allclose(outputs[key][row], alone[key][0], atol=1e-5)
    nothing = model(inputs_of(ids[:1], 0 * mask[:1]))["pooled_output"]
    np.testing.assert_array_equal(nothing, 0 * nothing)


def test_the_vectors_of_static_channels_stay_and_the_last_layer_keeps_its_norm():
    counts = {}
    for channels in ("non_static", "static", "multichannel"):
        config = TextCnnConfig(60, 8, num_filters=5, channels=channels, max_norm=0.4)
        model = build_model(config, "classifier", 3)
        before = weights_of(model)
        model.compile("sgd", {"logits": "mse"})
        model.optimizer.learning_rate = 1.0
        ids = np.random.default_rng(0).integers(1, 60, (4, 7))
        model.fit(inputs_of(ids), {"logits": 9 * np.ones((4, 3))}, verbose=0)
        after = weights_of(model)
        counts[channels] = {
            path for path in after if not np.array_equal(before[path], after[path])
        }
        # Kim's code rescales the column of each class.
        norms = np.linalg.norm(after["classifier/kernel"], axis=0)
        np.testing.assert_allclose(norms, 0.4, rtol=1e-5)
    table = "embeddings/token_table"
    assert table in counts["non_static"] and table in counts["multichannel"]
    assert table not in counts["static"] and f"static_{table}" not in counts["multichannel"]


def test_a_chooser_reads_each_choice():
    model = build_model(BAG, "chooser")
    ids = np.random.default_rng(0).integers(1, 60, (2, 3, 5))
    logits = model(inputs_of(ids))["logits"]
    swapped = model(inputs_of(ids[:, ::-1]))["logits"]
    np.testing.assert_allclose(swapped, logits[:, ::-1], atol=1e-6)
