"""What a model answers, in words."""

import types

import numpy as np
import pytest

from tfnlp.inspection.answer_text import answer_text

TOKENS = ["[CLS]", "New", "York", "is", "big", "[SEP]"]
TAGS = np.log([[0.9, 0.1], [0.2, 0.8], [0.25, 0.75], [0.6, 0.4], [0.9, 0.1], [0.9, 0.1]])


@pytest.mark.parametrize(
    ("head", "logits", "labels", "said"),
    [
        ("classifier", np.log([0.25, 0.75]), ["bad", "good"], "good (75.0 %), bad (25.0 %)"),
        (
            "classifier",
            np.log([0.1, 0.2, 0.3, 0.4]),
            None,
            "label 3 (40.0 %), label 2 (30.0 %), label 1 (20.0 %)",
        ),
        ("classifier", np.array([2.345]), ["score"], "2.35"),
        ("multi_label_classifier", np.log([3.0, 0.25]), ["p", "q"], "p (75.0 %), q (20.0 %)"),
        (
            "tagger",
            TAGS,
            ["O", "LOC"],
            "“New” LOC (80.0 %), “York” LOC (75.0 %), all other tokens O",
        ),
        ("tagger", TAGS[3:], ["O", "LOC"], "all tokens O"),
        ("answerer", TAGS[:, 1], None, "from “New” (35.6 %) to “big” (35.6 %)"),
        ("chooser", np.zeros(1), None, ""),
        ("masked_lm", np.zeros((6, 9)), None, ""),
        (None, np.zeros(1), None, ""),
    ],
)
def test_answers_have_names_and_probabilities(head, logits, labels, said):
    logits = logits[None].astype("float32")
    outputs = {"logits": logits, "start_logits": logits, "end_logits": logits[:, ::-1]}
    model = types.SimpleNamespace(head=head, output=outputs)
    assert answer_text(model, outputs, labels, TOKENS) == said
