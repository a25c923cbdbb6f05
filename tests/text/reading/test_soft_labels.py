"""Probabilities and votes as labels: what is read, what is learned, and what is refused."""

import numpy as np
import pytest

from tfnlp.functional.weighted_losses import cross_entropy, soft_cross_entropy
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.text import Examples, mix_labels, read_soft_labels
from tfnlp.text.reading.soft_labels import SoftExamples
from tfnlp.training import FineTuning, RunFolder, Splits, TrainingConfig
from tfnlp.utils.errors import InputError

NAMES = ["bad", "good"]


def test_probabilities_and_votes_are_read(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("good\tsentence\tbad\n0.3\ta\t0.7\n3\tb\t1\n1\tc\t0\n", encoding="utf-8")
    examples = read_soft_labels(path, "sentence", None, NAMES)
    assert (examples.texts, examples.labels, examples.label_names) == ([*"abc"], [0, 1, 1], NAMES)
    np.testing.assert_allclose(examples.probabilities, [[0.7, 0.3], [0.25, 0.75], [0, 1]])
    mixed = mix_labels(examples, [1, 1, 0], 0.5)
    np.testing.assert_allclose(mixed.probabilities, [[0.35, 0.65], [0.125, 0.875], [0.5, 0.5]])
    assert mixed.labels == [1, 1, 0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0.5\ta\t0.7", r"line 2: the probabilities \(bad 0.7, good 0.5\) sum to 1.2; they must"),
        ("0\ta\t0", "sum to 0; they must"),
        ("-1\ta\t2", "column 'good' has '-1', and must"),
        ("x\ta\t1", "column 'good' has 'x', and must"),
        ("inf\ta\t1", "column 'good' has 'inf', and must"),
    ],
)
def test_other_numbers_are_refused(row, message, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(f"good\tsentence\tbad\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_soft_labels(path, "sentence", None, NAMES)


def test_the_loss_is_that_of_pytorch_and_of_hard_labels_where_one_is_sure():
    torch = pytest.importorskip("torch", reason="parity needs .[parity]")
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, 3)).astype("float32")
    p = rng.dirichlet([1, 1, 1], 5).astype("float32")
    due = torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(p))
    assert float(soft_cross_entropy(p, logits)) == pytest.approx(float(due), rel=1e-6)
    ids = np.array([0, 2, 1, 1, 0])
    sure = float(soft_cross_entropy(np.eye(3)[ids], logits))
    assert sure == pytest.approx(float(cross_entropy(ids, logits)), rel=1e-6)


def test_a_model_learns_the_probabilities(one_layer, tokenizer, tmp_path):
    texts = ["fine film", "dull plot"] * 16
    p = np.array([[0.2, 0.8], [0.6, 0.4]] * 16, "float32")
    train = SoftExamples(texts, None, [1, 0] * 16, NAMES, p)
    dev = Examples(texts[:2], None, [1, 0], NAMES)
    model = build_model(one_layer, "classifier", 2)
    config = TrainingConfig(epochs=12, batch_size=8, learning_rate=1e-2)
    data, run = Splits(train, dev, 16), RunFolder(tmp_path / "run", {})
    figures = FineTuning(Classification(NAMES), model, tokenizer, data, config, run).run_all()
    logits = model(tokenizer(texts[:2]))["logits"]
    found = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(found, p[:2], atol=0.06)
    assert figures["dev_accuracy"] == 1.0
