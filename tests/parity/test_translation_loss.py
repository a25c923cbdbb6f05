"""The loss of a batch of pairs against that of `transformers`' Marian on the same weights."""

import numpy as np
import pytest

from tests.tasks.test_translation_batches import encodings
from tfnlp.checkpoints import load_model
from tfnlp.tasks import Translation
from tfnlp.tasks.translation_batches import TranslationBatches

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
pytest.importorskip("transformers", reason="parity needs .[parity]")

from transformers.trainer_pt_utils import LabelSmoother  # noqa: E402

from tests.parity.test_marian import PAD, reference  # noqa: E402


def test_losses_of_unequal_pairs(tmp_path):
    theirs = reference("marian", tmp_path)
    ours = load_model(tmp_path, "sequence_to_sequence")
    rng = np.random.default_rng(3)
    sides = [
        encodings([[*rng.integers(1, PAD, n), 0] for n in rng.integers(1, 9, 6)]) for _ in range(2)
    ]
    ((inputs, labels),) = TranslationBatches(*sides, 200, PAD, PAD).epoch()
    assert (labels == -100).any() and (inputs["encoder_padding_mask"] == 0).any()
    outputs = ours(inputs)
    expected = theirs(
        input_ids=torch.tensor(inputs["encoder_token_ids"]).long(),
        attention_mask=torch.tensor(inputs["encoder_padding_mask"]),
        labels=torch.tensor(labels).long(),  # from which it makes the decoder's inputs itself
    )
    for smoothing, due in (
        (0.0, expected.loss),
        (0.1, LabelSmoother(0.1)(expected, torch.tensor(labels).long())),
    ):
        (found,) = Translation(smoothing).losses(labels, outputs).values()
        assert float(found) == pytest.approx(due.item(), rel=1e-5)
    total, count = Translation().scores(labels, outputs)["log_likelihood"]
    assert -float(total) / float(count) == pytest.approx(expected.loss.item(), rel=1e-5)
    right, count = Translation().scores(labels, outputs)["accuracy"]
    best = expected.logits.argmax(-1).numpy()
    assert float(right) == (best == labels)[labels != -100].sum()
    assert float(count) == (labels != -100).sum()
