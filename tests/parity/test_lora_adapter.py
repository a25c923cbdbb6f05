"""Adapters in `peft`: ours there, and theirs here."""

import numpy as np
import pytest

from tests.checkpoints.test_lora_adapter import draw
from tests.models.small import sizes
from tfnlp.checkpoints import load_model, merge_adapter, save_model
from tfnlp.configs import config_by_name
from tfnlp.models import build_model
from tfnlp.training import add_lora

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")
peft = pytest.importorskip("peft", reason="parity needs .[parity]")

IDS = np.arange(5, 13)[None].astype("int32")
CASES = {
    "bert": ("classifier", "SequenceClassification", ["query", "value"]),
    "roberta": ("classifier", "SequenceClassification", ["query", "value"]),
    "gpt2": ("causal_lm", "CausalLM", ["c_attn"]),
}


def logits(model):
    inputs = {"token_ids": IDS, "segment_ids": np.zeros_like(IDS)}
    inputs = {name: inputs.get(name, np.ones_like(IDS)) for name in model.input}
    return model(inputs)["logits"].numpy()


def logits_of_torch(model):
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor(IDS).long()).logits.numpy()


@pytest.mark.parametrize("family", CASES)
def test_an_adapter_gives_the_same_in_both(family, tmp_path):
    head, task, targets = CASES[family]
    config = config_by_name(family, **sizes(max_length=16))
    save_model(build_model(config, head, 2 if head == "classifier" else None), tmp_path / "base")
    load = getattr(transformers, f"AutoModelFor{task}").from_pretrained
    ours = load_model(tmp_path / "base", head)
    # GPT-2 stores two of these as one, of twice the rank of the third.
    add_lora(ours, 2, ("query", "value", "intermediate"))
    draw(ours.trainable_variables)
    save_model(ours, tmp_path / "ours")
    theirs = peft.PeftModel.from_pretrained(load(tmp_path / "base"), tmp_path / "ours" / "adapter")
    np.testing.assert_allclose(logits_of_torch(theirs), logits(ours), atol=1e-5)
    kind = {"classifier": "SEQ_CLS", "causal_lm": "CAUSAL_LM"}[head]
    settings = peft.LoraConfig(kind, r=4, lora_alpha=16, use_rslora=True, target_modules=targets)
    theirs = peft.get_peft_model(load(tmp_path / "base"), settings)
    generator = torch.Generator().manual_seed(0)
    for parameter in theirs.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    theirs.save_pretrained(tmp_path / "theirs")
    base = load_model(tmp_path / "base", head)
    merge_adapter(base, tmp_path / "theirs")
    np.testing.assert_allclose(logits(base), logits_of_torch(theirs), atol=1e-5)
