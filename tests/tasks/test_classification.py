"""Classification: scores, and labels that are refused."""

import numpy as np
import pytest

from tfnlp.models import build_model
from tfnlp.tasks import Classification, Tagging
from tfnlp.text import Examples
from tfnlp.utils.errors import InputError


def test_classification_scores():
    task = Classification(["no", "yes"], "matthews")
    examples = Examples(["a"] * 6, labels=[0, 0, 1, 1, 1, 1])
    logits = np.eye(2)[[0, 1, 1, 1, 1, 0]]
    found = task.score(examples, None, {"logits": list(logits)})
    assert found["accuracy"] == pytest.approx(4 / 6)
    # (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))
    assert found["matthews"] == pytest.approx((3 * 1 - 1 * 1) / np.sqrt(4 * 4 * 2 * 2))
    assert found["macro_f1"] == pytest.approx((0.5 + 0.75) / 2)
    assert "f1" not in found
    for label, f1_of_it in (("no", 0.5), ("yes", 0.75)):
        task = Classification(["no ", "yes"], "f1", positive_label=label)
        assert task.score(examples, None, {"logits": list(logits)})["f1"] == f1_of_it


@pytest.mark.parametrize(
    ("task", "labels", "options", "message"),
    [
        (Classification, ["no", "yes"], {"monitor": "f1"}, "=f1 scores one class"),
        (Classification, ["no", "yes"], {"positive_label": "1"}, "positive_label=1 is not one of"),
        (Classification, ["no", "yes"], {"monitor": "F1"}, "monitor=F1 is no score of this"),
        (Classification, None, {}, "given: none"),
        (Classification, ["O"], {}, "at least 2 labels"),
        (Tagging, ["O"], {}, "at least 2 labels"),
        (Tagging, ["O", "B-x", "O"], {}, "all different"),
    ],
)
def test_labels_that_do_not_fit_are_refused(task, labels, options, message):
    with pytest.raises(InputError, match=message):
        task(labels, **options)


def test_the_baseline_is_the_commonest_label():
    dev = Examples(["x"] * 4, None, [0, 2, 2, 1])
    scores = Classification(["a", "b", "c"], positive_label="c").baseline(dev)
    due = {"accuracy": 0.5, "matthews": 0.0, "macro_f1": 2 / 9, "f1": 2 / 3}
    assert scores == pytest.approx(due)


def test_logits_of_one_class_are_refused(tiny_config, random_inputs):
    """Its loss would be 0 from the first step on."""
    model = build_model(tiny_config, "classifier", 1)
    outputs = model(random_inputs(2, 5, tiny_config.vocabulary_size))
    with pytest.raises(ValueError, match=r"logits of shape \(2, 1\) have one class"):
        Classification(["a", "b"]).loss(np.zeros(2, "int32"), outputs)


def test_linear_classifiers_are_figures_beside_a_model_s():
    train = Examples(["good film", "bad film", "good plot", "bad plot"], None, [1, 0, 1, 0])
    dev = Examples(["good", "bad"], None, [1, 0])
    splits = {"train": train, "dev": dev, "dev_web": dev}
    assert Classification(["bad", "good"]).linear_figures(splits) == {}
    figures = Classification(["bad", "good"], linear=True).linear_figures(splits)
    names = {name for name in figures if name.endswith("accuracy")}
    assert len(names) == 6 and {"dev_web/linear_svm_accuracy"} < names
    assert figures["dev_naive_bayes_accuracy"] == 1
    assert figures["linear_svm_bytes"] > 100 and figures["linear_svm_ms"] > 0
