import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.kills import assert_same_weights
from tfnlp import models
from tfnlp.training import TrainingConfig, optimizer_of
from tfnlp.training.step.optimizer import (
    FusedAdamW,
    Muon,
    averaged_weights,
    is_block_kernel,
    is_decayed,
    make_optimizer,
)
from tfnlp.training.step.schedules import WarmupLinearDecay


def test_updates_are_those_of_torch_with_clipping_and_repeated_tokens():
    torch = pytest.importorskip("torch", reason="parity needs .[parity]")
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(20, 3)).astype("float32"), rng.normal(size=3).astype("float32")]
    ours = [keras.Variable(v) for v in start]
    schedule = WarmupLinearDecay(0.1, 30, 3)
    # A large epsilon, so that where it is added shows.
    optimizer = FusedAdamW(schedule, weight_decay=0.05, epsilon=1e-3, global_clipnorm=1.0)
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in start]
    reference = torch.optim.AdamW(theirs, weight_decay=0.05, eps=1e-3)
    ids = [1, 5, 5, 7]
    for step in range(10):
        values = np.random.default_rng(step).normal(size=(4, 3)).astype("float32")
        shape = tf.constant([20, 3])
        sparse = tf.IndexedSlices(tf.constant(values), tf.constant(ids), dense_shape=shape)
        optimizer.apply([sparse, tf.constant(values[0])], ours)
        dense = np.zeros((20, 3), "float32")
        np.add.at(dense, ids, values)
        for parameter, gradient in zip(theirs, (dense, values[0]), strict=True):
            parameter.grad = torch.tensor(gradient)
        assert torch.nn.utils.clip_grad_norm_(theirs, 1.0) > 1
        reference.param_groups[0]["lr"] = float(schedule(step))
        reference.step()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"gradient_accumulation_steps": 3, "use_ema": True, "ema_overwrite_frequency": 2},
        {"loss_scale_factor": 4.0, "clipnorm": 0.1},
        {"clipvalue": 0.1},
    ],
)
def test_what_keras_adamw_takes_is_not_ignored(arguments):
    values = np.random.default_rng(0).normal(size=(7, 3)).astype("float32")
    # Where epsilon is added shows no more.
    optimizers = [k(0.1, epsilon=1e-12, **arguments) for k in (FusedAdamW, keras.optimizers.AdamW)]
    ours, theirs = keras.Variable(np.ones(3, "float32")), keras.Variable(np.ones(3, "float32"))
    for value in values:
        optimizers[0].apply([tf.constant(value)], [ours])
        optimizers[1].apply([tf.constant(value)], [theirs])
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
# The weights beside kernels and tables that are no biases, by family.
UNDECAYED = {
    "DebertaConfig": ("masked_lm", {"query_bias", "value_bias"}),
    "DebertaV2Config": ("masked_lm", set()),
    "XLNetConfig": ("permutation_lm", {"content_bias", "position_bias", "segment_bias"}),
    "TransformerXLConfig": (
        "causal_lm",
        {"content_bias", "position_bias", "bias_0", "bias_1", "cluster_bias"},
    ),
    "AlbertConfig": ("masked_lm", set()),
    "Gpt2Config": ("causal_lm", set()),
}
MORE_FIELDS = {
    "TransformerXLConfig": {"cutoffs": (8,), "tie_projections": False},
    "DebertaV2Config": {"convolution_size": 3},
}


@pytest.mark.parametrize("family", UNDECAYED)
def test_all_but_biases_and_norms_are_decayed_in_each_family(family):
    head, more = UNDECAYED[family]
    config = getattr(models, family)(vocabulary_size=20, **SIZES, **MORE_FIELDS.get(family, {}))
    model = models.build_model(config, head)
    optimizer = make_optimizer(model, 1.0)
    names = {True: set(), False: set()}
    for variable in model.trainable_variables:
        names[is_decayed(variable)].add(variable.name)
        assert optimizer._use_weight_decay(variable) == is_decayed(variable)
    assert names[False] == {"bias", "beta", "gamma"} | more
    assert not names[True] & names[False]


def test_the_scale_of_other_norms_is_not_decayed():
    layer = keras.layers.RMSNormalization()
    layer.build((None, 3))
    assert not any(is_decayed(v) for v in layer.trainable_variables)


@pytest.mark.parametrize("start", [1.0, 0.0])  # of length 0: no scale
def test_lamb_is_algorithm_2_of_its_paper(start):
    """Biases are neither decayed nor scaled, as in the authors' code."""
    rng = np.random.default_rng(0)
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(3)(inputs))
    kernel, bias = model.trainable_variables
    kernel.assign(start * kernel)
    bias.assign(rng.normal(size=3))
    schedule = WarmupLinearDecay(0.1, 12, 3)
    optimizer = make_optimizer(model, schedule, name="lamb", weight_decay=0.05, clip_norm=None)
    weights = [kernel.numpy(), bias.numpy()]
    m, v = ([np.zeros_like(w) for w in weights] for _ in range(2))
    for step in range(10):
        gradients = [rng.normal(size=w.shape).astype("float32") for w in weights]
        optimizer.apply([tf.constant(g) for g in gradients], [kernel, bias])
        rate = float(schedule(step))
        for i, (g, decay) in enumerate(zip(gradients, (0.05, None), strict=True)):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * g**2
            ratio = m[i] / (1 - 0.9 ** (step + 1))
            ratio = ratio / (np.sqrt(v[i] / (1 - 0.999 ** (step + 1))) + 1e-6)
            if decay:
                ratio = ratio + decay * weights[i]
                size = np.linalg.norm(weights[i])
                ratio *= size / np.linalg.norm(ratio) if size else 1
            weights[i] = weights[i] - rate * ratio
        np.testing.assert_allclose(kernel, weights[0], atol=1e-5)
        np.testing.assert_allclose(bias, weights[1], atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_averages_are_lent_to_the_model(precision):
    keras.config.set_dtype_policy(precision)
    inputs = keras.Input((2,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    config = TrainingConfig(ema_decay=0.75, learning_rate=0.1, warmup_share=0.0)
    model.compile(optimizer_of(config, model, 10), "mse")
    rng, average, steps = np.random.default_rng(0), None, 0
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    while steps < 4:  # the first of float16 overflow, and are left out
        x, y = rng.normal(size=(2, 4, 2)).astype("float32")
        model.train_on_batch(x, y[:, :1])
        weights = [w.numpy() for w in model.trainable_variables]
        if int(optimizer.iterations) == steps:
            with averaged_weights(model):
                np.testing.assert_array_equal(model.trainable_variables[0], weights[0])
            continue
        steps += 1
        average = weights if average is None else average
        average = [0.75 * a + 0.25 * w for a, w in zip(average, weights, strict=True)]
        with averaged_weights(model):
            for variable, expected in zip(model.trainable_variables, average, strict=True):
                np.testing.assert_allclose(variable, expected, atol=1e-6)
        assert_same_weights(model.trainable_variables, weights)
    assert max(np.abs(a - w).max() for a, w in zip(average, weights, strict=True)) > 1e-3


def orthogonalised(matrix, steps=5):
    """Newton-Schulz iterations of Jordan et al. 2024, in float64."""
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / np.linalg.norm(x)
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def test_muon_turns_the_matrices_of_blocks_and_leaves_the_rest_to_adamw():
    config = models.BertConfig(vocabulary_size=20, **{**SIZES, "intermediate_dim": 12})
    model = models.build_model(config, "classifier", 3)
    settings = {"weight_decay": 0.1, "clip_norm": None, "layer_decay": 0.5}
    optimizer = make_optimizer(model, 0.02, name="muon", **settings)
    adamw = make_optimizer(model, 0.02, epsilon=1e-12, **settings)
    variables = model.trainable_variables
    kernels = ("query", "key", "value", "attention/output", "intermediate", "output")
    turned = {v.path for v in variables if is_block_kernel(v)}
    assert len(turned) == len(kernels) and all(path.startswith("encoder_0/") for path in turned)
    start = [v.numpy().astype("float64") for v in variables]
    due, momentum, rng = list(start), [0.0] * len(start), np.random.default_rng(0)
    gradients = [[rng.normal(size=v.shape).astype("float32") for v in variables] for _ in range(3)]
    for step in gradients:
        optimizer.apply([tf.constant(g) for g in step], variables)
        for i, (gradient, variable) in enumerate(zip(step, variables, strict=True)):
            if variable.path in turned:
                momentum[i] = 0.95 * momentum[i] + gradient
                update = orthogonalised(gradient + 0.95 * momentum[i])
                rate = 0.02 * 0.5  # of the one block, by `layer_decay`
                due[i] = due[i] * (1 - 0.1 * rate)
                due[i] = due[i] - rate * 0.2 * max(variable.shape) ** 0.5 * update
    after = [v.numpy() for v in variables]
    for variable, value in zip(variables, start, strict=True):
        variable.assign(value)
    for step in gradients:
        adamw.apply([tf.constant(g) for g in step], variables)
    for variable, found, exact in zip(variables, after, due, strict=True):
        expected = exact if variable.path in turned else variable.numpy()
        np.testing.assert_allclose(found, expected, atol=2e-5, err_msg=variable.path)
    assert isinstance(optimizer, Muon)
    # The first moment of all, the second of AdamW's alone.
    assert sum(v is not None for v in optimizer.adam_velocities) == len(variables) - len(turned)


def test_recurrent_kernels_are_muons_too():
    config = models.RecurrentConfig(vocabulary_size=20, num_layers=1, hidden_dim=8)
    model = models.build_model(config, "causal_lm")
    turned = {v.name for v in model.trainable_variables if is_block_kernel(v)}
    assert turned == {"kernel", "recurrent_kernel"}


def test_betas_and_epsilon_reach_each_optimizer():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    for name, prefix in (("adamw", ""), ("lamb", ""), ("muon", "adam_")):
        optimizer = make_optimizer(model, 1.0, name=name, beta_1=0.8, beta_2=0.7, epsilon=1e-3)
        assert getattr(optimizer, f"{prefix}beta_1") == 0.8
        assert getattr(optimizer, f"{prefix}beta_2") == 0.7
        assert optimizer.epsilon == 1e-3
        copy = type(optimizer).from_config(optimizer.get_config())
        assert copy.epsilon == 1e-3
