"""A supernet's parts compute what the models made of them compute, and are trained together."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from distill.learning import soft_label_terms
from distill.search import SearchSpace, StudentScorer, SubStudent, Supernet, extract
from distill.search.supernet import Parts, SupernetDistiller
from tests.models.small import sizes
from tfnlp.models import (
    AlbertConfig,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ModernBertConfig,
    build_model,
)
from tfnlp.tasks import Classification
from tfnlp.text import Examples
from tfnlp.training import encode_batches, predict
from tfnlp.utils.errors import InputError

SIZES = sizes(
    vocabulary_size=23,
    num_layers=3,
    num_heads=4,
    hidden_dim=16,
    intermediate_dim=24,
    max_length=40,
)
PART = SubStudent((0, 2), 3, 10, 23)


def make_model(config, **changes):
    model = build_model(config(**SIZES | changes), "classifier", 2)
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(np.asarray(weight) + rng.normal(0, 0.2, weight.shape))
    return model


@pytest.mark.parametrize("config", [BertConfig, DistilBertConfig, DebertaV2Config])
def test_parts_compute_as_the_model_of_them(config, random_inputs):
    changes = {"head_dim": 5} if config is BertConfig else {}  # as of a teacher with pruned heads
    supernet, inputs = Supernet(make_model(config, **changes)), random_inputs(3, 9, 23)
    student = PART if supernet.config.any_head_dim else SubStudent((0, 2), 4, 10, 23)
    run = tf.function(lambda x: supernet.model(x, training=False)["logits"])
    supernet.parts = Parts.of(student, 3)
    with supernet.gated():
        logits = run(inputs)
    smaller = extract(supernet.model, student)
    assert smaller.text_config.num_layers == 2
    np.testing.assert_allclose(smaller(inputs)["logits"], logits, rtol=1e-4, atol=1e-5)
    whole = supernet.model(inputs)["logits"]  # outside nothing is left out
    assert np.abs(whole - logits).max() > 0.1


def test_heads_that_cannot_be_pruned_are_not_left_in_silence():
    with pytest.raises(InputError, match="num_heads=3: heads of a deberta_v2 cannot"):
        extract(make_model(DebertaV2Config), PART)


@pytest.mark.parametrize(
    ("config", "changes"),
    [(AlbertConfig, {}), (ModernBertConfig, {}), (DebertaV2Config, {"convolution_size": 3})],
)
def test_layers_that_cannot_be_left_out_are_refused(config, changes):
    with pytest.raises(InputError, match="left out"):
        Supernet(make_model(config, **changes))


def fitted(space, steps, precision="float32"):
    """Fit a supernet to a teacher of other weights; return it and its loss."""
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(precision)
    supernet, teacher = Supernet(make_model(BertConfig)), make_model(BertConfig)
    for weight in supernet.model.weights:
        weight.assign(np.asarray(weight) * 0.7)
    task = Classification(["a", "b"])
    arguments = supernet.model, task, soft_label_terms(task), teacher
    distiller = SupernetDistiller(supernet, space, 0, *arguments, hard_label_weight=0.0)
    distiller.compile(optimizer=keras.optimizers.Adam(1e-3))
    rng = np.random.default_rng(0)
    inputs = {
        "token_ids": rng.integers(1, 23, (8, 9)),
        "segment_ids": np.zeros((8, 9), int),
        "padding_mask": np.ones((8, 9), int),
    }
    data = tf.data.Dataset.from_tensors((inputs, rng.integers(0, 2, 8))).repeat(steps)
    history = distiller.fit(data, epochs=2, verbose=0).history
    return supernet, history["loss"], distiller


def test_every_student_learns():
    space = SearchSpace((1, 2, 3), (2, 4), (6, 24), (23,))
    supernet, losses, distiller = fitted(space, 20)
    assert losses[1] < 0.7 * losses[0]
    assert distiller.draws.state.numpy()[1] > 0
    assert not any("call" in vars(block) for block in supernet.blocks)


def test_parts_outside_the_space_do_not_move():
    space = SearchSpace((3,), (2,), (6,), (23,))
    before, (supernet, *_) = make_model(BertConfig), fitted(space, 2)
    for number in range(3):
        path = f"encoder_{number}/feed_forward/output/kernel"
        kernels = [
            next(np.asarray(w) for w in model.weights if w.path == path)
            for model in (before, supernet.model)
        ]
        moved = np.abs(kernels[1] - 0.7 * kernels[0]).max(axis=1) > 1e-5
        assert moved[:6].all() and not moved[6:].any()


def test_parts_run_alone_after_a_pass_that_counts(random_inputs):
    model = make_model(BertConfig, num_layers=2, dropout=0.0, attention_dropout=0.0)
    space, supernet = SearchSpace((1, 2), (2, 4), (6, 24), (23,)), Supernet(model)
    task, inputs = Classification(["a", "b"]), random_inputs(3, 9, 23)
    distiller = SupernetDistiller(supernet, space, 0, model, task, [], hard_label_weight=1.0)

    @tf.function(autograph=False)
    def run():
        with keras.StatelessScope():  # as gradient accumulation counts labels first
            distiller(inputs, training=True)
        return distiller(inputs, training=True)[1]["logits"]

    with supernet.gated():
        logits = run()
    smallest = extract(model, space.smallest(2))(inputs)["logits"]
    np.testing.assert_allclose(smallest, logits, rtol=1e-4, atol=1e-5)


def test_half_precision_learns_like_float32():
    space = SearchSpace((1, 3), (2, 4), (6, 24), (23,))
    (_, exact, _), (_, half, _) = fitted(space, 10), fitted(space, 10, "mixed_bfloat16")
    np.testing.assert_allclose(half, exact, rtol=0.1)


def test_scores_are_those_of_the_models(tokenizer):
    texts = ["a fine film", "the plot is dull", "dull film", "fine", "x x film", "not dull"] * 3
    examples = Examples(texts, None, [0, 1, 1, 0, 1, 0] * 3, ["a", "b"])
    model = make_model(BertConfig, vocabulary_size=tokenizer.vocabulary_size)
    task = Classification(["a", "b"])
    batches = encode_batches(task, tokenizer, examples, 16, batch_size=4)
    score = StudentScorer(Supernet(model), task, examples, batches)
    for student in (PART, SubStudent((1,), 2, 24, 23), SubStudent((0, 1, 2), 4, 24, 23)):
        logits = predict(extract(model, student), tokenizer, texts)["logits"]
        accuracy = np.mean(logits.argmax(1) == examples.labels)
        assert score(student)["accuracy"] == pytest.approx(accuracy)
