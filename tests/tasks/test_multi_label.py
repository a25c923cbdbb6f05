"""Several labels a text: files, losses and scores, thresholds, and what a training keeps."""

import json

import keras
import numpy as np
import pytest
from sklearn import metrics

from tfnlp.functional.weighted_losses import binary_cross_entropy, cross_entropy
from tfnlp.models import build_model
from tfnlp.pipelines import load_runner
from tfnlp.pipelines.pipeline import thresholds_of
from tfnlp.tasks import Classification, MultiLabelClassification, class_weights
from tfnlp.tasks.classifier_settings import ClassLoss
from tfnlp.tasks.multi_label import best_threshold
from tfnlp.text import Examples, LabelColumns, read_label_sets
from tfnlp.text.reading.soft_labels import SoftExamples
from tfnlp.training import FineTuning, RunFolder, Splits, TrainingConfig
from tfnlp.utils.errors import InputError

NAMES = ["joy", "love", "anger"]
SETS = [(0,), (), (0, 1), (2,)]
FILES = {
    "a.tsv": "sentence\tlabels\na\tjoy\nb\t\nc\tlove, joy,joy\nd\tanger\n",
    "a.csv": 'sentence,labels\na,joy\nb,\nc,"joy,love"\nd,anger\n',
    "a.jsonl": "".join(
        json.dumps({"sentence": text, "labels": [NAMES[i] for i in ids]}) + "\n"
        for text, ids in zip("abcd", SETS, strict=True)
    ),
    "each.tsv": "love\tsentence\tjoy\tanger\n0\ta\t1\t0\n0\tb\t0\t0\n"
    "1\tc\t1\t0\n0\td\tfalse\t1.0\n",
}


@pytest.mark.parametrize("name", FILES)
def test_all_formats_say_the_same(name, tmp_path):
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    columns = LabelColumns(each=("joy", "love", "anger") if name == "each.tsv" else ())
    examples = read_label_sets(path, columns, NAMES)
    assert (examples.texts, examples.labels, examples.pairs) == ([*"abcd"], SETS, None)
    if not columns.each:
        assert read_label_sets(path, columns).label_names == sorted(NAMES)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("sentence\tlabels\na\tjoy,fear\n", {}, "line 2: label 'fear' is not one of the labels"),
        ("sentence\tjoy\na\t0.5\n", {"each": ("joy",)}, "line 2: column 'joy' has '0.5'"),
        ("sentence\tjoy\na\t1\n", {"each": ("joy",)}, "columns of labels are joy, and"),
        ("sentence\tlabels\na\tjoy\n", {"labels": "label"}, "no column 'label'"),
        (
            '{"sentence": "a", "labels": {"joy": 1}}',
            {},
            "field 'labels' must be a text or a number, or a list of them",
        ),
        *(
            (json.dumps({"sentence": "a", "labels": labels}), {}, "line 1: a list of labels has")
            for labels in ([1.0, 0.0], [0, 1, 1], [None], [["joy"]], [True])
        ),
    ],
)
def test_bad_files_are_refused(text, columns, message, tmp_path):
    path = tmp_path / ("a.jsonl" if text.startswith("{") else "a.tsv")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_label_sets(path, LabelColumns(**columns), NAMES)


def test_the_labels_of_a_file_are_its_own_without_names(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("sentence\tlabels\na\t10,2\n", encoding="utf-8")
    assert read_label_sets(path, LabelColumns()).label_names == ["2", "10"]
    for labels, message in (
        ("", "There must be at least 1 label, all"),
        ("['joy', 'love']", r"line 2: \"\['joy'\" is of a list as text"),
        ("[3, 27]", r"line 2: '\[3' is of a list as text"),
        ("nan", "line 2: the label 'nan' stands for none"),
    ):
        path.write_text(f"sentence\tlabels\na\t{labels}\n", encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_label_sets(path, LabelColumns())
    path = tmp_path / "a.jsonl"  # classes by their numbers, or in brackets
    path.write_text('{"sentence": "a", "labels": [3, 1, "[x]"]}\n', encoding="utf-8")
    examples = read_label_sets(path, LabelColumns())
    assert (examples.label_names, examples.labels) == (["1", "3", "[x]"], [(0, 1, 2)])
    with pytest.raises(InputError, match="label_separator is empty"):
        LabelColumns(separator="")


def test_losses_and_their_weights_are_those_of_pytorch():
    torch = pytest.importorskip("torch", reason="parity needs .[parity]")
    functional = torch.nn.functional
    rng = np.random.default_rng(0)
    logits, w = rng.normal(size=(5, 3)).astype("float32") * 4, np.array([1, 2, 0.5], "float32")
    labels, ids = rng.integers(0, 2, (5, 3)), rng.integers(0, 3, 5)
    x, y, weights = torch.tensor(logits), torch.tensor(labels).float(), torch.tensor(w)
    due = functional.binary_cross_entropy_with_logits(x, y, pos_weight=weights)
    found = binary_cross_entropy(labels, logits, positive_weights=w)
    assert float(found) == pytest.approx(float(due), rel=1e-6)
    due = functional.cross_entropy(x, torch.tensor(ids), weight=weights)
    found = cross_entropy(ids, logits, class_weights=w)
    assert float(found) == pytest.approx(float(due), rel=1e-6)
    for task, y in ((MultiLabelClassification, labels), (Classification, ids)):
        plain, weighted = (task(NAMES, class_loss=ClassLoss(each)) for each in (None, w))
        losses = [float(each.loss(y, {"logits": logits})) for each in (plain, weighted)]
        assert abs(losses[0] - losses[1]) > 1e-3


def test_weights_of_classes():
    examples = Examples([*"abcd"], None, [0, 0, 0, 1], ["a", "b", "c"])
    # n / (C n_c), as scikit-learn's compute_class_weight; of no example as of one.
    np.testing.assert_allclose(class_weights(["balanced"], examples), [4 / 9, 4 / 3, 4 / 3])
    np.testing.assert_allclose(class_weights(["b=2.5"], examples), [1, 2.5, 1])
    assert class_weights(None, examples) is None
    p = np.array([[0.7, 0.3, 0]] * 4, "float32")
    soft = SoftExamples([*"abcd"], None, [0] * 4, ["a", "b", "c"], p)
    np.testing.assert_allclose(class_weights(["balanced"], soft), [4 / 8.4, 4 / 3.6, 4 / 3])
    several = Examples([*"abcd"], None, SETS, NAMES)
    np.testing.assert_allclose(class_weights(["balanced"], several, True), [1, 3, 3])
    for given, message in (
        (["x=1"], "x is unknown"),
        (["balanced", "b=2"], "class_weights=balanced,b=2 must be balanced alone, or"),
        (["b=-1"], "positive"),
        (["b="], "positive"),
        (["b=1", "b=2"], "b=2: 'b' has a weight already"),
    ):
        with pytest.raises(InputError, match=message):
            class_weights(given, examples)


def test_scores():
    task = MultiLabelClassification(NAMES, threshold=0.5)
    examples = Examples([*"abcd"], None, SETS, NAMES)
    logits = [[1, -1, -1], [-1, -1, -1], [2, -1, 1], [-2, -2, -1]]
    found = task.score(examples, None, {"logits": np.array(logits, "float32")})
    # joy: 2 right of 2; love: none of 1; anger: 1 wrong, 1 missed.
    found.pop("mean_average_precision")
    due = {"macro_f1": 1 / 3, "micro_f1": 2 * 2 / (3 + 4), "sample_f1": (1 + 1 + 0.5 + 0) / 4}
    assert found == pytest.approx(due | {"exact_match": 0.5})
    predictions = task.decode(examples, None, {"logits": np.array(logits, "float32")})
    assert predictions == [("joy",), (), ("joy", "anger"), ()]
    by_label = task.label_scores(examples, predictions)
    assert by_label["joy"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "texts": 2}
    assert by_label["anger"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "texts": 1}
    ranks = np.eye(3)[[0, 1, 0, 2]]
    alike = task.score_outputs(Examples([], None, [(0,), (1,), (0,), (2,)]), {"logits": ranks})
    assert alike == {"mean_average_precision": 1.0}


def test_the_threshold_is_that_of_the_highest_f1():
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        applies = rng.integers(0, 2, size)
        p = rng.integers(0, 9, size) / 10  # some are equal
        applies[0] = 1
        tried = [best_threshold(applies, p), *p]
        f1 = [2 * (applies * (p >= t)).sum() / (applies.sum() + (p >= t).sum()) for t in tried]
        assert f1[0] == max(f1)
    assert best_threshold(np.zeros(3), np.arange(3) / 3) == 0.5
    assert MultiLabelClassification(NAMES).decisive() == {}
    assert MultiLabelClassification(NAMES, threshold=0.3).decisive() == {"threshold": 0.3}
    for threshold in ("1.5", "nan", "best"):
        with pytest.raises(InputError, match=f"threshold={threshold} must be a number from 0"):
            MultiLabelClassification(NAMES, threshold=threshold)


@pytest.mark.parametrize("threshold", ["label", "all", 0.5])
def test_it_learns_and_the_best_epoch_keeps_its_thresholds(
    threshold, one_layer, tokenizer, tmp_path
):
    """A text has the labels whose words it has."""
    words = ["fine", "dull", "plot"]
    sets = [tuple(i for i in range(3) if n >> i & 1) for n in range(8)] * 4
    texts = [" ".join(["film", *(words[i] for i in ids)]) for ids in sets]
    data = Examples(texts, None, sets, NAMES)
    task = MultiLabelClassification(NAMES, threshold=threshold)
    config = TrainingConfig(epochs=8, batch_size=8, learning_rate=1e-2, keep_every=4)
    run = RunFolder(tmp_path / "run", {})
    model = build_model(one_layer, "multi_label_classifier", 3)
    data = Splits(data, Examples(texts[:8], None, sets[:8], NAMES), 16)
    figures = FineTuning(task, model, tokenizer, data, config=config, run=run).run_all()
    assert figures["dev_macro_f1"] == 1.0
    assert figures["dev_mean_average_precision"] == 1.0
    assert "thresholds" in (run.best / "config.json").read_text()
    kept = (run.checkpoints / "step_4/config.json").read_text()
    assert ("thresholds" in kept) == (threshold == 0.5)  # of no epoch that dev has seen
    runner = load_runner(run.best)
    thresholds = runner.settings["thresholds"]
    assert len({*thresholds}) == (3 if threshold == "label" else 1)
    assert (thresholds == [0.5] * 3) == (threshold == 0.5)
    found = runner.classify(texts[:8])
    due = [tuple(NAMES[i] for i in ids) for ids in sets[:8]]
    assert [prediction.labels for prediction in found] == due
    assert [*found[0].probabilities] == NAMES


def test_scores_in_half_precision_are_those_of_the_folder(one_layer, tokenizer, tmp_path):
    rng, words = np.random.default_rng(0), ["fine", "dull", "plot", "film", "the", "is"]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(60)]
    applies = rng.random((60, 3)) < 0.4
    sets = [tuple(np.flatnonzero(row)) for row in applies]
    keras.config.set_dtype_policy("mixed_bfloat16")
    task, config = MultiLabelClassification(NAMES), TrainingConfig(epochs=1, batch_size=16)
    model = build_model(one_layer, "multi_label_classifier", 3)
    data = Splits(*[Examples(texts, None, sets, NAMES)] * 2, 16)
    run = RunFolder(tmp_path / "run", {})
    figures = FineTuning(task, model, tokenizer, data, config=config, run=run).run_all()
    keras.config.set_dtype_policy("float32")
    found = load_runner(run.best).classify(texts)
    predicted = np.array([[name in x.labels for name in NAMES] for x in found])
    probabilities = np.array([[*x.probabilities.values()] for x in found])
    due = metrics.f1_score(applies, predicted, average="macro")
    assert figures["dev_macro_f1"] == pytest.approx(due, abs=1e-9)
    due = metrics.average_precision_score(applies, probabilities)
    assert figures["dev_mean_average_precision"] == pytest.approx(due, abs=1e-9)


def test_one_label_is_scored_by_its_own_f1():
    task = MultiLabelClassification(["toxic"], threshold=0.5)
    examples = Examples([*"abc"], None, [(0,), (), (0,)], ["toxic"])
    found = task.score(examples, None, {"logits": np.array([[2.0], [1.0], [-1.0]], "float32")})
    due = {"macro_f1": 0.5, "micro_f1": 0.5, "sample_f1": 1 / 3, "exact_match": 1 / 3}
    assert found == pytest.approx(due | {"mean_average_precision": (1 / 1 + 2 / 3) / 2})


@pytest.mark.parametrize("thresholds", [[0.5], [0.5, 0.5, 2], "0.5"])
def test_thresholds_of_other_labels_are_refused(thresholds):
    with pytest.raises(InputError, match="no probabilities of its 3 labels"):
        thresholds_of({"thresholds": thresholds}, NAMES)
    assert thresholds_of({}, NAMES) == [0.5] * 3
