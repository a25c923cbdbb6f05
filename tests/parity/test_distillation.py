"""Losses as the papers' PyTorch code has them, and a student that `transformers` opens."""

import dataclasses

import numpy as np
import pytest

from distill.learning.methods import METHODS
from distill.learning.student import make_student
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

F = torch.nn.functional
B, L, D, N, LAYERS = 2, 5, 8, 2, 3
TASK = Classification(["a", "b", "c"])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def random_outputs(seed):
    """Random outputs in the form of a model's, whose last text has 3 tokens."""
    rng = np.random.default_rng(seed)

    def tensors(count, *shape):
        return [rng.normal(size=(B, *shape)).astype("float32") for _ in range(count)]

    return {
        "logits": tensors(1, 3)[0],
        "hidden_states": tensors(LAYERS + 1, L, D),
        "attention_scores": tensors(LAYERS, N, L, L),
        **{name: tensors(LAYERS, N, L, D // N) for name in ("queries", "keys", "values")},
    }


@pytest.fixture(scope="module")
def model(tiny_config):
    """Whose outputs have these shapes: methods look at nothing else."""
    sizes = {"num_layers": LAYERS, "num_heads": N, "hidden_dim": D, "intermediate_dim": 8}
    asked = {"hidden_states": True, "attention_scores": True, "attention_projections": True}
    return build_model(dataclasses.replace(tiny_config, **sizes), "classifier", 3, **asked)


def of_torch(outputs):
    return {
        name: [torch.tensor(v) for v in x] if isinstance(x, list) else torch.tensor(x)
        for name, x in outputs.items()
    }


def relations(x, heads, mask):
    """unilm/minilm: queries, keys or values as (B, R, L, D / R), scaled products, masked."""
    x = x.transpose(1, 2).reshape(B, L, heads, -1).transpose(1, 2)
    scores = x @ x.transpose(-1, -2) / x.shape[-1] ** 0.5
    return scores + (1.0 - mask)[:, None, None, :] * -10000.0


def kl(teacher, student, mask):
    """The mean over heads and real queries."""
    p, log_q = F.softmax(teacher, -1), F.log_softmax(student, -1)
    errors = F.kl_div(log_q, p, reduction="none").sum(-1)
    return errors.mean(1)[mask > 0].mean()


def expected(method, t, s, mask):
    """A method's own losses from both models' tensors."""
    real = mask > 0

    def both(name):
        return zip(t[name], s[name], strict=True)

    pairs = real[:, :, None] & real[:, None, :]
    states = [F.mse_loss(a[real], b[real]) for a, b in both("hidden_states")]
    scores = [
        F.mse_loss(a.transpose(0, 1)[:, pairs], b.transpose(0, 1)[:, pairs])
        for a, b in both("attention_scores")
    ]
    if method == "tinybert":  # Huawei's TinyBERT: MSELoss of states, of scores
        return sum(states) + sum(scores)
    if method == "logits":  # on request, each pair counting the same: 0.3 and 0.1 of their means
        return 0.3 * sum(states) / len(states) + 0.1 * sum(scores) / len(scores)
    if method == "distilbert":  # transformers' distillation: CosineEmbeddingLoss
        a, b = t["hidden_states"][-1][real], s["hidden_states"][-1][real]
        return F.cosine_embedding_loss(b, a, torch.ones(len(a)))
    if method == "pkd":  # intersun/PKD-for-BERT-Model-Compression: normalised, mse_loss
        a, b = (
            torch.stack([F.normalize(h[:, 0], p=2, dim=-1) for h in x["hidden_states"][1:-1]])
            for x in (t, s)
        )
        return 100 * F.mse_loss(a, b)
    if method == "minilm":
        a, b = (
            x["attention_scores"][-1] + (1.0 - mask)[:, None, None, :] * -10000.0 for x in (t, s)
        )
        values = [relations(x["values"][-1], N, mask) for x in (t, s)]
        return kl(a, b, mask) + kl(*values, mask)
    return sum(
        kl(*(relations(x[name][-1], 4, mask) for x in (t, s)), mask)
        for name in ("queries", "keys", "values")
    )


@pytest.mark.parametrize("masked", [False, True])
def test_losses_are_those_of_pytorch(masked, model):
    teacher, student = random_outputs(0), random_outputs(1)
    mask = MASK if masked else MASK * 0 + 1
    t, s, torch_mask = of_torch(teacher), of_torch(student), torch.tensor(mask).float()
    own = {"logits": {"hidden_state_weight": 0.3, "attention_weight": 0.1}}
    own["minilm_v2"] = {"relation_heads": 4}
    for temperature, weight in ((2.0, 1.0), (5.0, 0.7)):
        p, log_q = t["logits"] / temperature, F.log_softmax(s["logits"] / temperature, -1)
        soft = temperature**2 * F.kl_div(log_q, F.softmax(p, -1), reduction="batchmean")
        for name, method in METHODS.items():
            given = {"temperature": temperature, "soft_label_weight": weight} | own.get(name, {})
            terms = method(model, model, TASK, **given)
            found = sum(term.weight * term.loss(teacher, student, mask) for term in terms)
            due = weight * soft + expected(name, t, s, torch_mask)
            assert float(found) == pytest.approx(float(due), rel=1e-5), name


def test_a_distilbert_of_a_bert_opens_in_transformers(
    tiny_config, tokenizer, tmp_path, random_inputs
):
    teacher = build_model(tiny_config, "classifier", 2)
    student = make_student(teacher, 2, family="distilbert")
    save_model(student, tmp_path, ["bad", "good"], tokenizer)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert type(theirs).__name__ == "DistilBertForSequenceClassification"
    inputs = random_inputs(3, 7, tiny_config.vocabulary_size)
    with torch.no_grad():
        due = theirs(
            input_ids=torch.tensor(inputs["token_ids"]).long(),
            attention_mask=torch.tensor(inputs["padding_mask"]).long(),
        ).logits
    np.testing.assert_allclose(student(inputs)["logits"], due, atol=1e-5)
