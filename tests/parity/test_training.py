"""Training steps against `transformers` and PyTorch from the same weights: the same losses."""

import numpy as np
import pytest

from tfnlp import tasks
from tfnlp.checkpoints import load_model
from tfnlp.training import FineTuner, WarmupLinearDecay, adamw

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")

STEPS, BATCH, LENGTH, VOCABULARY = 20, 4, 9, 50
NAMES = ["O", "B-a", "I-a", "B-b"]
TASKS = {
    "Classification": (tasks.Classification(NAMES), "BertForSequenceClassification"),
    "Regression": (tasks.Regression(), "BertForSequenceClassification"),
    "Tagging": (tasks.Tagging(NAMES), "BertForTokenClassification"),
    "Answering": (tasks.Answering(), "BertForQuestionAnswering"),
    "Choosing": (tasks.Choosing(), "BertForMultipleChoice"),
}


@pytest.mark.parametrize("name", TASKS)
def test_losses_of_training_steps(name, tmp_path):
    task, class_name = TASKS[name]
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=40,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=task.num_classes or 2,
    )
    theirs = getattr(transformers, class_name)(config).train()
    theirs.save_pretrained(tmp_path)
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
        ids, mask, labels, their_labels = batch(name, step % 4)
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
        found.append(float(ours.train_on_batch(inputs, labels)))
        for group in optimizer.param_groups:
            group["lr"] = float(schedule(step))
        loss = theirs(
            input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask), **their_labels
        ).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.2)
        optimizer.step()
        expected.append(loss.item())
    assert expected[-1] < 0.8 * expected[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def batch(name, step):
    """Random ids, their mask, and labels that can be learned from them, ours and theirs."""
    shape = (BATCH, 3, LENGTH) if name == "Choosing" else (BATCH, LENGTH)
    ids = np.random.default_rng(step).integers(1, VOCABULARY, shape)
    mask = np.ones_like(ids)
    mask[0, ..., 6:] = 0
    if name == "Answering":
        labels = np.stack([(ids * mask).argmax(1), (ids + 100 * (1 - mask)).argmin(1)], 1)
        start, end = torch.tensor(labels.T)
        return ids, mask, labels, {"start_positions": start, "end_positions": end}
    if name == "Regression":
        labels = (ids[:, 0] / VOCABULARY).astype("float32")
    else:
        labels = {
            "Classification": lambda: ids[:, 0] % 4,
            "Tagging": lambda: np.where(mask, ids % 4, -100),
            "Choosing": lambda: ids[:, :, 0].argmax(1),
        }[name]()
    return ids, mask, labels, {"labels": torch.tensor(labels)}
