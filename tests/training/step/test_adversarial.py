import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.models import BertConfig, build_model
from tfnlp.tasks import Classification, Tagging
from tfnlp.tasks.kinds import ANSWERER, kind_of
from tfnlp.text.batching.batches import IGNORED
from tfnlp.training import FineTuner
from tfnlp.training.step.adversarial import AdversarialRegularizer

# Fresh, and long enough that each token has but a small part in the answer.
STILL = {"dropout": 0.0, "attention_dropout": 0.0}
SIZES = {"num_layers": 3, "num_heads": 4, "hidden_dim": 64, "intermediate_dim": 128}
CONFIG = BertConfig(vocabulary_size=200, max_length=64, **SIZES, **STILL)


def test_gradients_of_half_precision_reach_all_tokens(random_inputs):
    inputs = random_inputs(16, 64, 200)
    real = inputs["padding_mask"].astype(bool)
    inputs = {key: keras.ops.convert_to_tensor(value) for key, value in inputs.items()}
    found = []
    for dtype in ("float32", "mixed_float16"):
        keras.utils.set_random_seed(0)
        model = build_model(CONFIG, "tagger", 2, dtype=dtype)
        regularizer = AdversarialRegularizer(model, kind_of(model), 1.0)
        x = keras.ops.cast(regularizer.embed(inputs), "float32")
        start = regularizer._start(keras.ops.shape(x))
        found.append(np.array(regularizer.gradient(inputs, model(inputs), x, 1.0, start))[real])
    exact, half = found
    assert np.abs(found).max(-1).min() > 0
    # They point the same way: the cosine of most tokens is that of rounding.
    cosine = (exact * half).sum(-1) / np.linalg.norm(exact, axis=-1)
    assert np.median(cosine / np.linalg.norm(half, axis=-1)) > 0.9


def test_texts_to_choose_from_move_each_as_far_as_a_text_alone(random_inputs):
    keras.utils.set_random_seed(0)
    model = build_model(CONFIG, "chooser")
    flat = random_inputs(6, 16, 200)
    inputs = {key: np.reshape(value, (2, 3, -1)) for key, value in flat.items()}
    found = []
    for batch in (inputs, *({k: v[i : i + 1] for k, v in inputs.items()} for i in range(2))):
        regularizer = AdversarialRegularizer(model, kind_of(model), 1.0)
        batch = {key: keras.ops.convert_to_tensor(value) for key, value in batch.items()}
        x = keras.ops.cast(regularizer.embed(batch), "float32")
        move = 0.01 * keras.ops.cos(100.0 * x)  # of no draw, which a smaller batch would not have
        found.append(np.array(regularizer.gradient(batch, model(batch), x, 1.0, move)))
    whole, *each = found
    assert whole.shape == (6, 16, 64) and np.abs(whole).max() > 0
    # The mean over two examples halves the gradient of each.
    np.testing.assert_allclose(2 * whole, np.concatenate(each), atol=1e-3 * np.abs(whole).max())


def test_starts_are_cut_at_two_deviations_and_two_outputs_count_as_their_mean():
    model = build_model(CONFIG, "answerer")
    names = ANSWERER.reads
    regularizer = AdversarialRegularizer(model, ANSWERER, 1.0, start=0.5)
    starts = np.abs(regularizer._start((4, 64, 64)))
    assert starts.max() == 1.0
    # 4.55 % of normal draws are further than two deviations from 0.
    assert np.mean(starts == 1.0) == pytest.approx(0.0455, abs=0.01)
    rng = np.random.default_rng(0)
    a, b = ({name: rng.normal(size=(2, 5)) for name in names} for _ in range(2))
    parts = [float(regularizer._divergence({n: a[n]}, {n: b[n]}, {})) for n in names]
    assert abs(parts[0] - parts[1]) > 0.01
    assert float(regularizer._divergence(a, b, {})) == pytest.approx(np.mean(parts), rel=1e-5)


def test_a_model_is_saved_after_it(tmp_path, random_inputs):
    model = build_model(CONFIG, "classifier", 2)
    AdversarialRegularizer(model, kind_of(model), 1.0)
    model.save(tmp_path / "model.keras")
    saved = keras.models.load_model(tmp_path / "model.keras")
    inputs = random_inputs(2, 8, 200)
    np.testing.assert_array_equal(saved(inputs)["logits"], model(inputs)["logits"])


def test_all_passes_of_a_step_share_what_dropout_draws(random_inputs):
    config = dataclasses.replace(CONFIG, dropout=0.5, attention_dropout=0.2)
    model = build_model(config, "classifier", 2)
    inputs = {k: keras.ops.convert_to_tensor(v) for k, v in random_inputs(4, 16, 200).items()}
    still = AdversarialRegularizer(model, kind_of(model), 1.0, step_size=0, start=0)
    loss = tf.function(lambda: still(inputs, model(inputs, training=True)))
    assert loss() > 1e-4  # each pass draws its own

    @tf.function
    def shared():
        still.keep_draws()
        outputs = model(inputs, training=True)
        return still(inputs, outputs), outputs["logits"]

    seeds = [np.array(seed) for seed in still.seeds]
    (first, one), (second, another) = shared(), shared()
    assert max(first, second) < 1e-9
    # The next step draws anew, and seeds are where passes without the regularizer leave them.
    assert np.abs(one - another).max() > 1e-3
    after = [np.array(seed) for seed in still.seeds]
    for seed, value in zip(still.seeds, seeds, strict=True):
        seed.assign(value)
    for _ in range(2):
        model(inputs, training=True)
    assert len(after) > 3
    np.testing.assert_array_equal(after, [np.array(seed) for seed in still.seeds])


@pytest.mark.parametrize("classes", [1, 2])
def test_adversarial_loss_grows_with_the_step_uphill(classes, tiny_config, random_inputs):
    inputs = random_inputs(4, 9, tiny_config.vocabulary_size)
    config = dataclasses.replace(tiny_config, **STILL)
    model = build_model(config, "classifier", classes)
    outputs = {"logits": model(inputs)["logits"]}

    def loss(start, step):
        regularizer = AdversarialRegularizer(model, kind_of(model), 1.0, step, start, seed=1)
        return float(regularizer(inputs, outputs))

    losses = [loss(*x) for x in ((0.0, 0.0), (1e-2, 0.0), (1e-2, 0.5), (1e-2, 2.0))]
    assert losses[0] == pytest.approx(0, abs=1e-10)
    assert losses[0] < losses[1] < losses[2] < losses[3]
    # Small beside the start: a large step grows the divergence either way.
    assert loss(1e-2, -1e-3) < losses[1] < loss(1e-2, 1e-3)


def test_adversarial_loss_is_the_symmetric_divergence(tiny_config):
    model = build_model(tiny_config, "classifier", 3)
    regularizer = AdversarialRegularizer(model, kind_of(model), 1.0)
    a, b = (tf.Variable(np.random.default_rng(n).normal(size=(5, 3))) for n in range(2))
    with tf.GradientTape() as tape:
        found = regularizer._divergence({"logits": a}, {"logits": b}, {})
    p, q = (tf.nn.softmax(x).numpy() for x in (a, b))
    assert float(found) == pytest.approx(np.mean(np.sum((p - q) * np.log(p / q), -1)), rel=1e-5)
    # Cross-entropies towards the other's probabilities: a pulls at b as b pulls at a.
    by_a, by_b = tape.gradient(found, [a, b])
    np.testing.assert_allclose(by_a, (p - q) / 5, atol=1e-6)
    np.testing.assert_allclose(by_b, (q - p) / 5, atol=1e-6)


def test_adversarial_losses_are_weighted_by_example(tiny_config, random_inputs):
    config = dataclasses.replace(tiny_config, **STILL)
    task, model = Tagging(["O", "B-x"]), build_model(config, "tagger", 2)
    inputs = random_inputs(3, 7, tiny_config.vocabulary_size)
    labels = np.where(inputs["padding_mask"], 1, IGNORED)

    def loss(rows, weights=None):
        x = {key: value[rows] for key, value in inputs.items()}
        regularizer = AdversarialRegularizer(model, kind_of(model), 1.0, 0.5, 0.1, seed=1)
        tuner = FineTuner(model, task, regularizer)
        return float(tuner.compute_loss(x, labels[rows], tuner(x), weights))

    # The random start of the first two is the same in a batch of two and of three.
    whole, part = loss([0, 1, 2], np.array([1.0, 1.0, 0.0])), loss([0, 1])
    assert whole == pytest.approx(part, rel=1e-5)
    assert loss([0, 1], np.array([3.0, 3.0])) == pytest.approx(part, rel=1e-5)
    assert loss([0, 1, 2]) != pytest.approx(part, rel=1e-3)


def test_the_log_has_the_adversarial_loss_without_its_weight(one_layer, random_inputs):
    config = dataclasses.replace(one_layer, **STILL)
    model = build_model(config, "classifier", 2)
    inputs, labels = random_inputs(4, 9, config.vocabulary_size), np.array([0, 1, 1, 0])

    def logged(weight):
        regularizer = AdversarialRegularizer(model, kind_of(model), weight, 2.0, 0.5, seed=1)
        tuner = FineTuner(model, Classification(["no", "yes"]), regularizer)
        tuner.compile(keras.optimizers.SGD(0.0))
        return {k: v[0] for k, v in tuner.fit(inputs, labels, verbose=0).history.items()}

    light, heavy = logged(1.0), logged(101.0)
    assert light["adversarial_loss"] == pytest.approx(heavy["adversarial_loss"], rel=1e-5) != 0
    difference = heavy["loss"] - light["loss"]
    assert difference == pytest.approx(100 * light["adversarial_loss"], rel=1e-3)
