"""Training steps against `transformers` and PyTorch from the same weights: the same losses."""

import numpy as np
import pytest

from tfnlp.checkpoints import load_model
from tfnlp.tasks import Tagging
from tfnlp.training import FineTuner, WarmupLinearDecay, adamw

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")

STEPS = 20


def test_losses_of_training_steps(tmp_path):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=40,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=4,
    )
    theirs = transformers.BertForTokenClassification(config).train()
    theirs.save_pretrained(tmp_path)
    task = Tagging(["O", "B-a", "I-a", "B-b"])
    model = load_model(tmp_path, task.head, task.num_classes)
    ours = FineTuner(model, task)
    schedule = WarmupLinearDecay(2e-2, STEPS, 3)
    # Clipped at every step, and with tokens that occur many times in a batch.
    ours.compile(adamw(model, schedule, weight_decay=0.1, clip_norm=0.2), jit_compile=False)
    named = list(theirs.named_parameters())
    plain = [p for n, p in named if "bias" in n or "LayerNorm" in n]
    decayed = [p for n, p in named if "bias" not in n and "LayerNorm" not in n]
    groups = [
        {"params": decayed, "weight_decay": 0.1},
        {"params": plain, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=2e-2, eps=1e-8)
    found, expected = [], []
    for step in range(STEPS):
        ids = np.random.default_rng(step).integers(1, 50, (4, 9))
        labels = ids % 4
        mask = np.ones_like(ids)
        mask[0, 6:] = 0
        labels[0, 6:] = -100
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
        found.append(float(ours.train_on_batch(inputs, labels)))
        for group in optimizer.param_groups:
            group["lr"] = float(schedule(step))
        loss = theirs(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            labels=torch.tensor(labels),
        ).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.2)
        optimizer.step()
        expected.append(loss.item())
    assert expected[-1] < 0.8 * expected[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
