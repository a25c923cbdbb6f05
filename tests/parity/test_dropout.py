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

torch = pytest.importorskip("torch", reason="parity needs .[parity]")

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
    "embedding_dropout": 0.2,
    "mlp_dropout": 0.15,
}
# Each family's classifier, and the heads whose dropout differs from it.
HEADS = [(name, "classifier") for name in families.CASES if name not in families.TWICE]
HEADS += [("bert", "tagger"), ("bert", "chooser"), ("roberta", "answerer")]
HEADS += [("distilbert", "tagger"), ("distilbert", "answerer"), ("albert", "chooser")]
HEADS += [("deberta", "tagger"), ("deberta_v2_xlarge", "chooser")]
HEADS += [("xlnet", "tagger"), ("gpt2", "tagger")]
LENGTH = 7


@pytest.mark.parametrize(("name", "head"), HEADS)
def test_states_and_logits_vary_as_much(name, head, tmp_path, monkeypatch):
    stem, fields = families.CASES[name]
    config = getattr(families.transformers, f"{stem}Config")()
    rates = {k: v for k, v in RATES.items() if k in fields or hasattr(config, k)}
    if "Deberta" in stem:  # it reads one that its configs need not have
        rates["cls_dropout"] = RATES["cls_dropout"]
    monkeypatch.setitem(families.CASES, name, (stem, fields | rates))
    theirs = families.reference(tmp_path, name, families.HEADS[head]).train()
    ours = load_model(tmp_path, head)
    # Where positions are dropped they are so once for all rows of a pass.
    rows, passes = (80, 60) if name.startswith(("deberta", "xlnet")) else (320, 15)
    inputs = families.make_inputs(name, LENGTH, masked=False, batch=1)
    inputs = {k: np.repeat(v, rows, axis=0) for k, v in inputs.items()}
    if head == "chooser":
        inputs = {k: v.reshape(-1, 2, LENGTH) for k, v in inputs.items()}
    key = "start_logits" if head == "answerer" else "logits"
    their_states, their_logits = [], []
    theirs.base_model.register_forward_hook(lambda *args: their_states.append(args[-1][0].numpy()))
    keras.utils.set_random_seed(0)
    torch.manual_seed(0)
    with torch.no_grad():
        for _ in range(passes):
            their_logits.append(families.run_reference(theirs, name, inputs)[key].numpy())
    constants = {k: tf.constant(v) for k, v in inputs.items()}
    # One graph, which draws anew whenever it runs.
    forward = tf.function(lambda: ours(constants, training=True))
    outputs = [forward() for _ in range(passes)]
    compared = ("sequence_output", their_states, 0.05), (key, their_logits, 0.08)
    for output, their_values, relative in compared:
        values = [x[output].numpy() for x in outputs]
        assert np.abs(values[0] - values[1]).max() > 0.01
        expected = np.concatenate(their_values).var(axis=0).mean()
        assert np.concatenate(values).var(axis=0).mean() == pytest.approx(expected, rel=relative)
