"""A student that `transformers` opens."""

import numpy as np
import pytest

from distill.learning.student import make_student
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")


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
