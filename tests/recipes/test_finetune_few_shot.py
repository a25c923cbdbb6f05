"""A classifier of some texts of each label is trained, exported and refused as a user does it."""

import json

import numpy as np
import pytest

from distill.runtime import TextClassifier
from tests.recipes.refusals import check_refusals
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import build_model
from tfnlp.pipelines import load_runner

TEXTS = {"good": ["a fine film", "fine fine", "the fine plot", "a film , fine"]}
TEXTS["bad"] = ["a dull film", "dull dull", "the dull plot", "a film , dull"]
ROWS = [(text, label) for label, texts in TEXTS.items() for text in texts]


@pytest.fixture
def flags(one_layer, tokenizer, tmp_path):
    save_model(build_model(one_layer), tmp_path / "bert", None, tokenizer)
    for name, rows in (("train", ROWS), ("dev", ROWS[1::2]), ("alike", ROWS[:4])):
        lines = ["sentence\tlabel", *map("\t".join, rows)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines))
    files = [f"--{name}={tmp_path / name}.tsv" for name in ("train", "dev")]
    files += [f"--model_dir={tmp_path / 'bert'}", f"--output_dir={tmp_path / 'run'}"]
    return [*files, "--max_length=12"]


def test_a_run_ends_in_a_classifier_and_its_file(run, float_file, flags, tmp_path):
    how = ["--shots=3", "--epochs=2", "--learning_rate=5e-3", "--keep_every=1"]
    run("finetune_few_shot", *flags, *how, "--baseline")
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_accuracy"] == 1 and figures["dev_logistic_regression_accuracy"] >= 0.5
    best = tmp_path / "run/best"
    model, file = load_runner(best), TextClassifier(float_file(best))
    texts = [text for text, _ in ROWS]
    p, expected = ([[*x.probabilities.values()] for x in y.classify(texts)] for y in (file, model))
    np.testing.assert_allclose(p, expected, atol=1e-5)
    # The head is that of the vectors of the 6 drawn texts, within an epoch too.
    step = load_model(tmp_path / "run/checkpoints/step_1", "classifier")
    for classifier in (step, load_model(best, "classifier")):
        kernel = np.asarray(classifier.get_layer("classifier").kernel)
        np.testing.assert_allclose(kernel[:, 0], -kernel[:, 1], atol=1e-7)
        assert np.abs(kernel).max() > 0.05


def test_bad_input_is_one_sentence(flags, tmp_path):
    check_refusals(
        "finetune_few_shot",
        flags,
        {
            "--shots=5": "shots=5 is more than the 4 texts",
            "--pair_column=label": "pair_column=label has no effect",
            "--multi_label": "multi_label=true",
            "--adversarial_weight=1": "adversarial_weight=1",
            "--probability_weight=0.5": "probability_weight=0.5 has no effect",
            f"--model_dir={tmp_path / 'run'}": "no folder",
            "": "",
        },
    )
