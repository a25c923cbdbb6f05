"""Translators of fewer layers, started from their teacher's."""

import numpy as np
import pytest

from distill.learning.translator_student import make_translator_student
from tfnlp.models import BertConfig, TransformerConfig, build_model
from tfnlp.utils.errors import InputError

CONFIG = TransformerConfig(
    vocabulary_size=20,
    num_layers=3,
    num_decoder_layers=4,
    num_heads=2,
    hidden_dim=8,
    intermediate_dim=8,
    dropout=0.3,
    max_length=16,
)


@pytest.fixture(scope="module")
def teacher():
    return build_model(CONFIG, "sequence_to_sequence")


def test_a_student_has_the_weights_of_the_layers_that_the_map_names(teacher):
    student = make_translator_student(teacher, 1, 2, dropout=0.1)
    assert (student.text_config.num_layers, student.text_config.decoder.num_layers) == (1, 2)
    assert student.text_config.dropout == 0.1
    ours, theirs = ({w.path: np.asarray(w) for w in model.weights} for model in (student, teacher))
    assert len(ours) < len(theirs)
    picked = {"encoder_0": "encoder_2", "decoder_0": "decoder_1", "decoder_1": "decoder_3"}
    seen = set()
    for path, value in ours.items():
        layer, _, rest = path.partition("/")
        seen.add(layer)
        np.testing.assert_array_equal(value, theirs[f"{picked.get(layer, layer)}/{rest}"])
    assert picked.keys() <= seen
    assert "embeddings" in seen


def test_a_student_of_all_layers_is_its_teacher(teacher):
    student = make_translator_student(teacher)
    inputs = {
        "encoder_token_ids": np.array([[3, 4, 5, 1]]),
        "encoder_padding_mask": np.array([[1, 1, 1, 1]]),
        "decoder_token_ids": np.array([[0, 6, 7]]),
    }
    np.testing.assert_array_equal(student(inputs)["logits"], teacher(inputs)["logits"])


def test_students_that_cannot_be_are_refused(teacher):
    with pytest.raises(InputError, match="student's decoder has 5 layers, but the teacher's 4"):
        make_translator_student(teacher, num_decoder_layers=5)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
    with pytest.raises(InputError, match="this student has the layers of a Transformer"):
        make_translator_student(build_model(BertConfig(vocabulary_size=9, **sizes), "masked_lm"))
