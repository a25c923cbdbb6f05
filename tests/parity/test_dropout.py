"""What dropout does in training: it varies what comes out as much as in `transformers`.

Two libraries draw other numbers, so their outputs are compared by the variance over many draws.
A dropout that is missing, added, or of another rate changes it by a tenth and more.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.parity import test_families as families
from tfnlp.checkpoints import load_model

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")

# By the names of configs; each kind of dropout has another rate.
RATES = {
    "hidden_dropout_prob": 0.15,
    "attention_probs_dropout_prob": 0.25,
    "classifier_dropout": 0.35,
    "classifier_dropout_prob": 0.35,
    "cls_dropout": 0.35,
    "summary_last_dropout": 0.25,
    "dropout": 0.15,
    "attention_dropout": 0.25,
    "activation_dropout": 0.2,
    "seq_classif_dropout": 0.35,
    "qa_dropout": 0.45,
    "resid_pdrop": 0.15,
    "attn_pdrop": 0.25,
    "embd_pdrop": 0.2,
}
HEADS = ("classifier", "tagger", "answerer", "chooser")
LENGTH, ROWS, PASSES = 7, 80, 60  # the dropout of positions is one for all rows of a pass


def variances(name, monkeypatch, folder, head=None, suffix="Model"):
    """The variance of the states, or of a head's logits, over draws: ours and theirs."""
    stem, fields = families.CASES[name]
    config = getattr(families.transformers, f"{stem}Config")()
    rates = {k: v for k, v in RATES.items() if k in fields or hasattr(config, k)}
    if "Deberta" in stem:  # it reads one that its configs need not have
        rates["cls_dropout"] = RATES["cls_dropout"]
    monkeypatch.setitem(families.CASES, name, (stem, fields | rates))
    theirs = families.reference(folder, name, suffix).train()
    ours = load_model(folder, head)
    inputs = families.make_inputs(name, LENGTH, masked=False, batch=1)
    inputs = {k: np.repeat(v, ROWS, axis=0) for k, v in inputs.items()}
    if head == "chooser":
        inputs = {k: v.reshape(-1, 2, LENGTH) for k, v in inputs.items()}
    keys = {None: ("sequence_output", "last_hidden_state"), "answerer": ("start_logits",) * 2}
    our_key, their_key = keys.get(head, ("logits",) * 2)
    keras.utils.set_random_seed(0)
    torch.manual_seed(0)
    constants = {k: tf.constant(v) for k, v in inputs.items()}
    # One graph, which draws anew whenever it runs.
    forward = tf.function(lambda: ours(constants, training=True)[our_key])
    found = [forward().numpy() for _ in range(PASSES)]
    assert np.abs(found[0] - found[1]).max() > 0.01
    with torch.no_grad():
        runs = [families.run_reference(theirs, name, inputs) for _ in range(PASSES)]
    expected = [getattr(x, their_key).numpy() for x in runs]
    return [np.concatenate(x).var(axis=0).mean() for x in (found, expected)]


@pytest.mark.parametrize("name", families.CASES)
def test_of_encoders(name, tmp_path, monkeypatch):
    found, expected = variances(name, monkeypatch, tmp_path)
    assert found == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("name", "head", "suffix"),
    [
        case
        for case in families.cases_with_heads()
        if case.values[1] in HEADS and case.values[0] not in families.TWICE
    ],
)
def test_of_heads(name, head, suffix, tmp_path, monkeypatch):
    found, expected = variances(name, monkeypatch, tmp_path, head, suffix)
    assert found == pytest.approx(expected, rel=0.08)
