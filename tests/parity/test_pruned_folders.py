"""Folders of compressed models open in `transformers`, with the same answers."""

import numpy as np
import pytest

from distill.compression.structured_pruning import prune_structure
from distill.compression.vocabulary_pruning import prune_vocabulary
from tests.grammar_corpus import make_reviews
from tfnlp.checkpoints import save_model
from tfnlp.models import AlbertConfig, BertConfig, RobertaConfig, build_model
from tfnlp.text import train_tokenizer

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "initializer_range": 0.3,
}
CASES = {
    "bert": ("wordpiece", BertConfig, "masked_lm"),
    "roberta": ("bpe", RobertaConfig, "classifier"),
    "albert": ("unigram", AlbertConfig, "classifier"),
}
CLASSES = {"masked_lm": "ForMaskedLM", "classifier": "ForSequenceClassification"}


@pytest.mark.parametrize("family", CASES)
def test_a_pruned_model_opens_in_transformers(family, tmp_path):
    kind, config, head = CASES[family]
    texts = [text for text, _ in make_reviews(120, seed=5)]
    tokenizer, _ = train_tokenizer(texts, kind, 500, None if kind == "wordpiece" else family)
    config = config(
        vocabulary_size=tokenizer.vocabulary_size, pad_token_id=tokenizer.pad_token_id, **SIZES
    )
    model = build_model(config, head, 2)
    smaller, pruned = prune_vocabulary(model, tokenizer, texts[:30])
    assert pruned.vocabulary_size < tokenizer.vocabulary_size
    block = "encoder/block_0" if family == "albert" else "encoder_0"
    importance = {block: {"units": np.random.default_rng(0).random(24)}}
    smaller = prune_structure(smaller, importance, intermediate_dim=10)
    save_model(smaller, tmp_path, None, pruned)
    theirs = getattr(transformers, f"AutoModel{CLASSES[head]}").from_pretrained(tmp_path).eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in texts[:5]:
        batch = their_tokenizer([text], return_tensors="pt")
        inputs = pruned([text])
        np.testing.assert_array_equal(batch["input_ids"].numpy(), inputs["token_ids"])
        with torch.no_grad():
            expected = theirs(**batch).logits.numpy()
        np.testing.assert_allclose(smaller(inputs)["logits"], expected, atol=1e-5)
