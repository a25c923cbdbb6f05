"""Training steps against `transformers` and PyTorch from the same weights: the same losses."""

import numpy as np
import pytest

from tests.parity.test_families import CASES, reference
from tfnlp import tasks
from tfnlp.checkpoints import load_model
from tfnlp.training import FineTuner, WarmupLinearDecay, make_optimizer

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

STEPS, BATCH, LENGTH, VOCABULARY = 20, 4, 9, 50
NAMES = ["O", "B-a", "I-a"]
TASKS = {
    "Classification": (tasks.Classification(NAMES), "ForSequenceClassification"),
    "Regression": (tasks.Regression(), "ForSequenceClassification"),
    "Tagging": (tasks.Tagging(NAMES), "ForTokenClassification"),
    "QuestionAnswering": (tasks.QuestionAnswering(), "ForQuestionAnswering"),
    "MultipleChoice": (tasks.MultipleChoice(), "ForMultipleChoice"),
}
# Every task of BERT's, and a classifier of every other family.
RUNS = [("bert", task) for task in TASKS]
FAMILIES = ("roberta", "distilbert", "albert", "electra", "deberta", "deberta_v2_xlarge")
FAMILIES += ("modernbert", "xlnet", "gpt", "gpt2")
RUNS += [(family, "Classification") for family in FAMILIES]


@pytest.mark.parametrize(("family", "name"), RUNS)
def test_losses_of_training_steps(family, name, tmp_path):
    task, suffix = TASKS[name]
    layers = ("num_hidden_layers", "n_layers", "n_layer")
    more_fields = {key: 1 for key in layers if key in CASES[family][1]}
    more_fields["initializer_range"] = 0.05
    theirs = reference(tmp_path, family, suffix, task.num_classes, **more_fields).train()
    model = load_model(tmp_path, task.kind.head, task.num_classes)
    ours = FineTuner(model, task)
    schedule = WarmupLinearDecay(2e-2, STEPS, 3)
    # Clipped at every step, and with tokens that occur many times in a batch.
    ours.compile(
        make_optimizer(model, schedule, weight_decay=0.1, clip_norm=0.2), jit_compile=False
    )
    decayed = set(transformers.Trainer.get_decay_parameter_names(None, theirs))
    groups = [
        {
            "params": [p for n, p in theirs.named_parameters() if (n in decayed) == chosen],
            "weight_decay": 0.1 if chosen else 0.0,
        }
        for chosen in (True, False)
    ]
    optimizer = torch.optim.AdamW(groups, lr=2e-2, eps=1e-8)
    found, expected = [], []
    for step in range(STEPS):
        ids, mask, labels, their_labels = batch(family, name, step % 4)
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
    # The same four batches come again and again.
    assert np.mean(expected[-4:]) < 0.8 * np.mean(expected[:4])
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def batch(family, name, step):
    """Random ids, their mask, and labels that can be learned from them, ours and theirs."""
    shape = (BATCH, 3, LENGTH) if name == "MultipleChoice" else (BATCH, LENGTH)
    ids = np.random.default_rng(step).integers(2, VOCABULARY, shape)
    mask = np.ones_like(ids)
    # XLNet's texts are padded before them: `transformers` takes the state of the last position.
    mask[0, ..., slice(3) if family == "xlnet" else slice(6, None)] = 0
    if "pad_token_id" in CASES[family][1]:
        ids = np.where(mask, ids, CASES[family][1]["pad_token_id"])
    if name == "QuestionAnswering":
        labels = np.stack([(ids * mask).argmax(1), (ids + 100 * (1 - mask)).argmin(1)], 1)
        start, end = torch.tensor(labels.T)
        return ids, mask, labels, {"start_positions": start, "end_positions": end}
    if name == "Regression":
        labels = (ids[:, 0] / VOCABULARY).astype("float32")
    else:
        labels = {
            "Classification": lambda: ids[:, 4] % 3,
            "Tagging": lambda: np.where(mask, ids % 3, -100),
            "MultipleChoice": lambda: ids[:, :, 0].argmax(1),
        }[name]()
    return ids, mask, labels, {"labels": torch.tensor(labels)}
