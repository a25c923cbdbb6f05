"""Convolutional networks and bags against plain loops."""

import keras
import numpy as np
import pytest

from tests.models.test_recurrent import inputs_of, with_random_biases
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import BagConfig, TextCnnConfig, build_model

CNN = TextCnnConfig(
    60, 8, num_filters=5, channels="multichannel", initializer_range=0.5, max_norm=0.4
)
BAG = BagConfig(60, 8, word_ngrams=3, buckets=40, initializer_range=0.5)
CASES = {"multichannel": CNN, "bag": BAG}


def weights_of(model):
    return {w.path: np.asarray(w, "float64") for w in model.weights}


def pooled_cnn(config, weights, ids):
    """The largest value of each filter, window by window."""
    x = sum(weights[f"{name}embeddings/token_table"][ids] for name in ("", "static_"))
    largest = []
    for width in config.filter_widths:
        kernel, bias = (weights[f"convolution_{width}/{name}"] for name in ("kernel", "bias"))
        for f in range(config.num_filters):
            values = []
            for start in range(1 - width, len(ids)):
                total = bias[f]
                for place in range(width):
                    if 0 <= start + place < len(ids):
                        total += x[start + place] @ kernel[place, :, f]
                values.append(max(total, 0))
            largest.append(max(values))
    return np.array(largest)


def pooled_bag(config, weights, ids):
    """The mean of the vectors of tokens and n-grams."""
    rows = [weights["embeddings/token_table"][i] for i in ids]
    for n in range(2, config.word_ngrams + 1):
        for start in range(len(ids) - n + 1):
            bucket = int(ids[start])
            for i in ids[start + 1 : start + n]:
                bucket = (bucket * 1009 + int(i)) % config.buckets
            rows.append(weights["ngram_embeddings/token_table"][bucket])
    return np.mean(rows, axis=0)


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_loops_and_padding_changes_nothing(name, tmp_path):
    config = CASES[name]
    model = with_random_biases(build_model(config, "classifier", 3))
    weights = weights_of(model)
    ids, mask = np.random.default_rng(0).integers(1, 60, (4, 7)), np.ones((4, 7))
    mask[1, 4:] = 0  # at the right
    mask[2, :2] = 0  # at the left
    mask[3, 1:] = 0  # one token, fewer than the narrowest window has
    outputs = model(inputs_of(ids, mask))
    pool = {"multichannel": pooled_cnn, "bag": pooled_bag}[name]
    for row in range(4):
        real = ids[row, mask[row] == 1]
        pooled = pool(config, weights, real)
        np.testing.assert_allclose(outputs["pooled_output"][row], pooled, atol=1e-5)
        logits = pooled @ weights["classifier/kernel"] + weights["classifier/bias"]
        np.testing.assert_allclose(outputs["logits"][row], logits, atol=1e-5)
        alone = model(inputs_of(real[None]))["logits"][0]
        np.testing.assert_allclose(alone, logits, atol=1e-5)
    nothing = model(inputs_of(ids[:1], 0 * mask[:1]))["pooled_output"]
    np.testing.assert_array_equal(nothing, 0 * nothing)
    model.save(tmp_path / "model.keras")
    save_model(model, tmp_path / "folder")
    kept = keras.models.load_model(tmp_path / "model.keras")
    read_back = load_model(tmp_path / "folder", "classifier")
    for other in (kept, read_back):
        assert other.text_config == config
        assert len(other.trainable_weights) == len(model.trainable_weights)
        np.testing.assert_array_equal(other(inputs_of(ids, mask))["logits"], outputs["logits"])


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


def test_half_precision_gives_the_same():
    for config in CASES.values():
        model = build_model(config, "classifier", 3)
        half = build_model(config, "classifier", 3, dtype="mixed_bfloat16")
        half.set_weights(model.get_weights())
        ids = np.random.default_rng(0).integers(1, 60, (2, 5))
        expected = model(inputs_of(ids))["logits"]
        found = half(inputs_of(ids))["logits"]
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, expected, atol=0.05)
