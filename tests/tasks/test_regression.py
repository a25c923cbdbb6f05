"""Regression: files, loss, scores and the initial bias."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.configs import config_by_name
from tfnlp.models import build_model
from tfnlp.tasks import Regression, read_scored_pairs
from tfnlp.tasks.regression import ScoredExamples
from tfnlp.utils.errors import InputError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", ["nan", "inf", "1,5", "1_5", "", "x"])
def test_scores_that_are_no_numbers_are_named(text, tmp_path):
    path = write(tmp_path / "a.tsv", "sentence1\tsentence2\tscore\na\tb\t2.5\n")
    assert read_scored_pairs(path).labels == [2.5]
    path = write(tmp_path / "a.tsv", f"sentence1\tsentence2\tscore\na\tb\t{text}\n")
    with pytest.raises(InputError, match=f"line 2: score '{text}' is not a number"):
        read_scored_pairs(path)


def test_the_loss_takes_labels_of_shape_b_and_b_1():
    logits = tf.constant([[1.0], [2.0], [4.0]])
    labels = np.array([1.0, 0.0, 1.0], "float32")
    for given in (labels, labels[:, None]):
        assert float(Regression().loss(given, {"logits": logits})) == pytest.approx(13 / 3)


def test_regression_scores():
    examples = ScoredExamples(["a"] * 4, None, [1.0, 2.0, 3.0, 10.0])
    found = Regression().score(examples, None, {"logits": list(np.array([[1], [2], [3], [4.0]]))})
    assert found["spearman"] == pytest.approx(1)
    assert found["pearson"] == pytest.approx(np.corrcoef([1, 2, 3, 4], [1, 2, 3, 10])[0, 1])
    assert found["mean_squared_error"] == pytest.approx(9)
    for labels, logits in ((examples.labels, [1, 1, 1, 1]), ([2.0] * 4, [1, 2, 3, 4])):
        examples.labels = labels
        constant = Regression().score(examples, None, {"logits": list(np.array([logits]).T)})
        assert constant["pearson"] == constant["spearman"] == 0


def test_the_baseline_is_the_mean_of_the_labels():
    scores = Regression().baseline(ScoredExamples(["x"] * 2, None, [2.0, 5.0]))
    assert scores == {"pearson": 0.0, "spearman": 0.0, "mean_squared_error": 2.25}


def test_a_new_regression_head_starts_at_the_training_mean(tiny_config):
    examples = ScoredExamples(["x"] * 3, None, [4.0, 5.0, 3.0])
    model = build_model(tiny_config, "classifier", 1)
    bias = model.get_layer("classifier").bias
    Regression().initialise_head(model, examples)
    np.testing.assert_array_equal(bias, [4.0])
    # A head that has learned stays as it is.
    Regression().initialise_head(model, ScoredExamples(["x"], None, [9.0]))
    np.testing.assert_array_equal(bias, [4.0])
    gpt = config_by_name("gpt", num_layers=1, hidden_dim=8, num_heads=2, vocabulary_size=20)
    Regression().initialise_head(build_model(gpt, "classifier", 1), examples)  # has no bias
