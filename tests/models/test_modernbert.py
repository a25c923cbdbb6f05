"""ModernBERT of texts longer than its bands: blocks, students."""

import numpy as np

from distill.learning.student import make_student
from tests.models.small import sizes
from tfnlp.models import ModernBertConfig, build_model

LENGTH = 110
FIELDS = sizes(num_layers=4, local_attention=8, classifier_pooling="mean", pad_token_id=0)


def make_inputs():
    ids = np.random.default_rng(0).integers(1, 20, (2, LENGTH)).astype("int32")
    mask = np.ones_like(ids)
    mask[0, 70:] = 0
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}


def test_blocks_of_tokens_give_the_same():
    config = ModernBertConfig(**FIELDS)
    model = build_model(config, "classifier", 3)
    expected = model(make_inputs())["logits"]
    in_blocks = build_model(config, "classifier", 3, block_size=32)
    in_blocks.set_weights(model.get_weights())
    np.testing.assert_allclose(in_blocks(make_inputs())["logits"], expected, atol=1e-6)
    # Padding changes nothing, be it near or far.
    inputs = make_inputs()
    inputs["token_ids"][0, 70:] = 7
    np.testing.assert_allclose(model(inputs)["logits"], expected, atol=1e-6)


def test_a_student_starts_from_blocks_of_its_own_kinds():
    teacher = build_model(ModernBertConfig(**FIELDS), "classifier", 2)
    student = make_student(teacher, 2, layer_map=[3, 1])
    weights = {w.path: w for w in teacher.weights}
    windows = [student.get_layer(f"encoder_{i}").attention.window for i in range(2)]
    assert windows == [None, 4]
    for weight in student.weights:
        path = weight.path.replace("encoder_0/", "encoder_3/")
        np.testing.assert_array_equal(weight, weights[path])
