"""Losses of pretraining on the same weights and inputs as `transformers` computes them."""

import numpy as np
import pytest

from tests.parity.test_families import CASES, reference, run_reference
from tfnlp.checkpoints import load_model, read_head, save_model
from tfnlp.objectives import Corpus, MaskedLM, NextSentence, SentenceOrder
from tfnlp.text import WordPieceTokenizer

torch = pytest.importorskip("torch", reason="parity needs .[parity]")

V = CASES["bert"][1]["vocab_size"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENIZER = WordPieceTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    + [f"{p}{c}" for p in ("", "##", "z") for c in LETTERS][: V - 5]
)


def batch_of(objective):
    rng = np.random.default_rng(3)
    documents = [
        [rng.integers(5, V, rng.integers(2, 9)) for _ in range(rng.integers(2, 6))]
        for _ in range(12)
    ]
    batches = objective.batches(Corpus.from_documents(documents), TOKENIZER, 6, 24, seed=1)
    return next(batches.epoch(2))


@pytest.mark.parametrize(
    ("name", "objective", "suffix"),
    [
        ("bert", MaskedLM(), "ForMaskedLM"),
        ("roberta", MaskedLM("words"), "ForMaskedLM"),
        ("distilbert", MaskedLM(), "ForMaskedLM"),
        ("albert", MaskedLM("spans"), "ForMaskedLM"),
        ("deberta", MaskedLM(), "ForMaskedLM"),
        ("bert", NextSentence(), "ForPreTraining"),
        ("albert", SentenceOrder(), "ForPreTraining"),
    ],
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
def test_losses_are_those_of_transformers(name, objective, suffix, tmp_path):
    theirs = reference(tmp_path, name, suffix)
    model = load_model(tmp_path, objective.head)
    inputs, labels = batch_of(objective)
    if name == "roberta":  # which has one segment, and pads by another id
        inputs = inputs | {"segment_ids": 0 * inputs["segment_ids"]}
        inputs["token_ids"] = np.where(inputs["padding_mask"], inputs["token_ids"], 1)
    losses = objective.losses(labels, objective.trained(model)(inputs))
    pair = labels["pair"] if isinstance(labels, dict) else None
    tokens = labels if pair is None else labels["tokens"]
    whole = np.full(inputs["token_ids"].shape, -100)
    real = tokens != -100
    whole[np.nonzero(real)[0], inputs["masked_positions"][real]] = tokens[real]
    their_labels = {"labels": torch.tensor(whole)}
    if pair is not None:
        assert {*pair} == {0, 1}
        key = {"bert": "next_sentence_label", "albert": "sentence_order_label"}[name]
        their_labels[key] = torch.tensor(pair).long()
    with torch.no_grad():
        expected = run_reference(theirs, name, inputs, **their_labels)
    total = sum(float(losses[key]) * objective.loss_weights[key] for key in losses)
    assert losses.keys() == objective.loss_weights.keys()
    assert total == pytest.approx(float(expected.loss), abs=1e-5)
    if pair is not None:  # each by itself too
        logits = expected.prediction_logits.transpose(1, 2)
        own = torch.nn.functional.cross_entropy(logits, torch.tensor(whole))
        assert float(losses["masked_lm_loss"]) == pytest.approx(float(own), abs=1e-5)


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_a_pretrained_folder_serves_what_comes_after_it(name, tmp_path, caplog):
    reference(tmp_path / "whole", name, "ForPreTraining")
    assert read_head(tmp_path / "whole") == "pretraining"
    whole = load_model(tmp_path / "whole", "pretraining")

    def same(model, part):
        kernel, other = (m.get_layer(part).get_weights()[0] for m in (model, whole))
        return np.array_equal(kernel, other)

    masked = load_model(tmp_path / "whole", "masked_lm")
    assert same(masked, "lm_transform")
    assert same(load_model(tmp_path / "whole", "classifier", 3), "pooler")
    # What a masked language model lacks of it starts anew.
    save_model(masked, tmp_path / "masked")
    again = load_model(tmp_path / "masked", "pretraining")
    assert same(again, "lm_transform")
    for part in ("pooler", "pair_classifier"):
        assert not same(again, part)
        assert np.std(again.get_layer(part).get_weights()[0]) == pytest.approx(0.3, rel=0.4)
    assert "so random" in caplog.text
