"""One text, one answer: the Keras model, its file, its folder read again, and `transformers`."""

import numpy as np
import pytest

from distill.export import Export, export_tflite
from distill.runtime.litert_backend import LiteRtBackend
from tests.text.family_tokenizers import saved, theirs_of, tokenizer_of
from tfnlp.checkpoints import load_model, save_model
from tfnlp.configs import config_by_name
from tfnlp.models import build_model
from tfnlp.pipelines import KerasBackend

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

TEXTS = [
    "The quick brown fox jumps over the lazy dog .",
    "정말 재미있는 영화였다 ! 다시 보고 싶다",
    "",
    "😀 café\u200b東京",
    "the lazy fox " * 30,
]
LENGTH = 40
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
# Their class and what it gives, by head.
HEADS = {
    "classifier": ("SequenceClassification", ["logits"]),
    "multi_label_classifier": ("SequenceClassification", ["logits"]),
    "tagger": ("TokenClassification", ["logits"]),
    "answerer": ("QuestionAnswering", ["start_logits", "end_logits"]),
}


@pytest.mark.parametrize(
    ("family", "head"),
    [
        ("bert", "classifier"),
        ("bert", "multi_label_classifier"),
        ("bert", "answerer"),
        ("deberta-v2", "tagger"),
    ],
)
def test_all_give_one_answer(family, head, tmp_path):
    tokenizer, labels = tokenizer_of(family), None if head == "answerer" else ["a", "b", "c"]
    fields = SIZES | {"vocabulary_size": tokenizer.vocabulary_size, "initializer_range": 0.3}
    model = build_model(
        config_by_name(family.replace("-v2", "_v3"), **fields), head, labels and len(labels)
    )
    saved(tokenizer, tmp_path / "tokenizer", family)
    folder = tmp_path / "folder"
    save_model(model, folder, labels, tokenizer)
    export_tflite(model, tmp_path / "m.tflite", tokenizer, labels, Export("float32", LENGTH))
    stem, names = HEADS[head]
    theirs = getattr(transformers, f"AutoModelFor{stem}").from_pretrained(folder)
    their_tokenizer = theirs_of(tmp_path / "tokenizer", family)
    encodings = tokenizer.encode(TEXTS, max_length=LENGTH)
    backends = [
        KerasBackend(model, tokenizer, labels, {"max_length": LENGTH}),
        KerasBackend(load_model(folder, head), tokenizer, labels, {"max_length": LENGTH}),
        LiteRtBackend(tmp_path / "m.tflite"),
    ]
    answers = [backend.run(encodings) for backend in backends]
    for i, text in enumerate(TEXTS):
        inputs = their_tokenizer(text, truncation=True, max_length=LENGTH, return_tensors="pt")
        with torch.no_grad():
            outputs = theirs(**inputs)
        expected = {name: getattr(outputs, name)[0] for name in names}
        if head == "multi_label_classifier":
            assert theirs.config.problem_type == "multi_label_classification"
            expected = {"probability": torch.sigmoid(expected["logits"])}
        elif labels:
            expected = {"probability": torch.softmax(expected["logits"], -1)}
        for rows in answers:
            for name, value in expected.items():
                np.testing.assert_allclose(rows[i][name], value, atol=1e-4)
