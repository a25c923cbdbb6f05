import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp import models
from tfnlp.objectives import ReplacedTokens
from tfnlp.training import TrainingConfig, training_config
from tfnlp.training.layer_wise_rates import layer_depths
from tfnlp.training.optimizer import (
    OPTIMIZERS,
    FusedAdamW,
    Lamb,
    adamw,
    averaged_weights,
    is_decayed,
    make_optimizer,
    optimizer_of,
)
from tfnlp.training.pretraining import Pretrainer
from tfnlp.training.schedules import (
    SCHEDULES,
    WarmupInverseSquareRoot,
    WarmupLinearDecay,
    vaswani_peak,
)
from tfnlp.utils.errors import InputError


def test_the_config_accepts_the_schedules_and_optimizers_that_there_are():
    assert tuple(SCHEDULES) == training_config.SCHEDULES
    assert tuple(OPTIMIZERS) == training_config.OPTIMIZERS


def test_schedule_rises_and_falls_linearly():
    schedule = WarmupLinearDecay(2.0, total_steps=10, warmup_steps=4)
    found = [float(schedule(step)) for step in (0, 2, 4, 7, 10, 12)]
    assert found == pytest.approx([0, 1, 2, 1, 0, 0])
    assert float(WarmupLinearDecay(2.0, 10)(0)) == 2
    with pytest.raises(ValueError, match="warmup_steps=11"):
        WarmupLinearDecay(1.0, 10, 11)


def test_the_rate_of_the_transformer_is_that_of_the_paper():
    width, warmup = 512, 4000
    assert vaswani_peak(width, warmup) == pytest.approx(6.987712e-4, rel=1e-6)
    schedule = WarmupInverseSquareRoot(vaswani_peak(width, warmup), 100_000, warmup)
    for step in (1, 100, 4000, 4001, 100_000):
        due = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert float(schedule(step)) == pytest.approx(due, rel=1e-5)


def test_warmup_in_steps_and_the_second_beta_reach_the_optimizer():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    config = TrainingConfig(epochs=2, learning_rate=1.0, warmup_steps=4, beta_2=0.5)
    optimizer = optimizer_of(config, model, steps_per_epoch=10)
    assert optimizer.beta_2 == 0.5
    assert float(optimizer._learning_rate(3)) == pytest.approx(0.75)
    with pytest.raises(InputError, match="warmup_steps=4 is more than the 2 steps"):
        optimizer_of(config, model, steps_per_epoch=1)
    for wrong in ({"beta_2": 1.0}, {"warmup_steps": -1}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}="):
            TrainingConfig(**wrong)


THEIR_NAMES = {"constant": "constant_with_warmup"}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_those_of_transformers(name):
    torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
    transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")
    for warmup in (0, 7):
        schedule = SCHEDULES[name](0.3, 40, warmup)
        stepped = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
        theirs = transformers.get_scheduler(THEIR_NAMES.get(name, name), stepped, warmup, 40)
        expected = []
        for _ in range(41):
            expected.append(theirs.get_last_lr()[0])
            stepped.step()
            theirs.step()
        assert [float(schedule(step)) for step in range(41)] == pytest.approx(expected, abs=1e-7)
        copy = type(schedule).from_config(schedule.get_config())
        assert float(copy(13)) == float(schedule(13))
    # After its end a run that goes on has the last rate; a cosine would rise again.
    assert float(schedule(60)) <= float(schedule(40))


def test_updates_are_those_of_torch_with_clipping_and_repeated_tokens():
    torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
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


def test_amsgrad_is_refused():
    with pytest.raises(ValueError, match="amsgrad=True is not supported"):
        FusedAdamW(0.1, amsgrad=True)


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
    found = []
    for kind in (FusedAdamW, keras.optimizers.AdamW):
        variable = keras.Variable(np.ones(3, "float32"))
        # Where epsilon is added shows no more.
        optimizer = kind(0.1, epsilon=1e-12, **arguments)
        for value in values:
            optimizer.apply([tf.constant(value)], [variable])
        found.append(variable.numpy())
    np.testing.assert_allclose(*found, atol=1e-5)


def test_biases_and_norms_are_not_decayed():
    inputs = keras.Input((4,))
    outputs = keras.layers.LayerNormalization()(keras.layers.Dense(3)(inputs))
    model = keras.Model(inputs, outputs)
    optimizer = adamw(model, 1.0, weight_decay=0.1)
    optimizer.build(model.trainable_variables)
    before = {v.path: v.numpy() for v in model.trainable_variables}
    optimizer.apply([tf.zeros_like(v) for v in model.trainable_variables])
    for variable in model.trainable_variables:
        factor = 0.9 if variable.name == "kernel" else 1.0
        np.testing.assert_allclose(variable, factor * before[variable.path], rtol=1e-6)


def test_a_config_gives_warm_up_decay_and_clipping():
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(inputs))
    kernel, bias = model.trainable_variables
    config = TrainingConfig(
        epochs=3, learning_rate=0.5, warmup_share=0.25, weight_decay=0.2, clip_norm=0.1
    )
    optimizer = optimizer_of(config, model, steps_per_epoch=4)
    optimizer.build([kernel, bias])
    rates, weight = [], 1.0
    for _ in range(13):
        rates.append(float(optimizer.learning_rate))
        optimizer.apply([tf.zeros_like(kernel), tf.zeros_like(bias)])
        weight *= 1 - 0.2 * rates[-1]
        np.testing.assert_allclose(kernel, [[weight]], rtol=1e-6)
    # 3 of 12 steps up, 9 down.
    expected = [0, 1 / 3, 2 / 3, *(np.arange(9, 0, -1) / 9), 0]
    assert rates == pytest.approx(0.5 * np.array(expected), abs=1e-7)
    np.testing.assert_array_equal(bias, [0])
    # A gradient of length 5, clipped, is a tenth of the first momentum.
    optimizer.apply([tf.constant([[3.0]]), tf.constant([4.0])])
    found = [float(np.squeeze(m)) for m in optimizer._momentums]
    assert found == pytest.approx([0.1 * 0.1 * 3 / 5, 0.1 * 0.1 * 4 / 5], rel=1e-5)


SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
ATTENTION = ("attention/key", "attention/output", "attention/query", "attention/value")
FEED_FORWARD = ("feed_forward/intermediate", "feed_forward/output")
TABLES = ("embeddings/position_table", "embeddings/token_table")
BERT_TABLES = (*TABLES, "embeddings/segment_table", "lm_transform/kernel")
# What is decayed of each family beside the kernels of a block (all of its own where named).
DECAYED = {
    "BertConfig": ("masked_lm", BERT_TABLES),
    "RobertaConfig": ("masked_lm", BERT_TABLES),
    "DistilBertConfig": ("masked_lm", (*TABLES, "lm_transform/kernel")),
    "AlbertConfig": ("masked_lm", (*BERT_TABLES, "embeddings/projection/kernel")),
    "ElectraConfig": ("masked_lm", (*BERT_TABLES, "embeddings/projection/kernel")),
    "DebertaConfig": (
        "masked_lm",
        ("embeddings/token_table", "relative_positions/table", "lm_transform/kernel"),
    ),
    "DebertaV2Config": (
        "masked_lm",
        (
            *("embeddings/token_table", "relative_positions/table", "lm_transform/kernel"),
            "convolution/convolution/kernel",
        ),
    ),
    "XLNetConfig": (
        "permutation_lm",
        (
            *("embeddings/token_table", "embeddings/query_vector"),
            *("encoder_0/attention/segment_table", "encoder_0/attention/position/kernel"),
        ),
    ),
    "TransformerXLConfig": (
        "causal_lm",
        (
            *("embeddings/table_0", "embeddings/table_1"),
            *("embeddings/projection_0", "embeddings/projection_1", "lm_softmax/cluster_kernel"),
            *("lm_softmax/projection_0", "lm_softmax/projection_1"),
            "encoder_0/attention/position/kernel",
        ),
    ),
    "GptConfig": ("causal_lm", TABLES),
    "Gpt2Config": ("causal_lm", TABLES),
}
MORE_FIELDS = {
    "TransformerXLConfig": {"cutoffs": (8,), "tie_projections": False},
    "DebertaV2Config": {"convolution_size": 3},
}
# DeBERTa v1 has one kernel for queries, keys and values, and two for positions.
MORE_ATTENTION = {
    "DebertaConfig": tuple(
        f"attention/{name}" for name in ("joint", "output", "position_key", "position_query")
    )
}


@pytest.mark.parametrize("family", DECAYED)
def test_what_is_decayed_of_each_family(family):
    head, expected = DECAYED[family]
    config = getattr(models, family)(vocabulary_size=20, **SIZES, **MORE_FIELDS.get(family, {}))
    model = models.build_model(config, head)
    block = "encoder/block_0" if family == "AlbertConfig" else "encoder_0"
    kernels = MORE_ATTENTION.get(family, ATTENTION) + FEED_FORWARD
    expected = {*expected, *(f"{block}/{name}/kernel" for name in kernels)}
    assert {v.path for v in model.trainable_variables if is_decayed(v)} == expected
    plain = {v.name for v in model.trainable_variables if not is_decayed(v)}
    names = {"bias", "beta", "gamma"}
    names |= {
        "DebertaConfig": {"query_bias", "value_bias"},
        "XLNetConfig": {"content_bias", "position_bias", "segment_bias"},
        "TransformerXLConfig": {
            *("content_bias", "position_bias", "bias_0", "bias_1", "cluster_bias"),
        },
    }.get(family, set())
    assert plain == names
    optimizer = adamw(model, 1.0)
    assert {
        v.path for v in model.trainable_variables if optimizer._use_weight_decay(v)
    } == expected


def test_the_scale_of_other_norms_is_not_decayed():
    layer = keras.layers.RMSNormalization()
    layer.build((None, 3))
    assert not any(is_decayed(v) for v in layer.trainable_variables)


def test_lamb_is_algorithm_2_of_its_paper():
    """Biases are neither decayed nor scaled, as in the authors' code."""
    rng = np.random.default_rng(0)
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(3)(inputs))
    kernel, bias = model.trainable_variables
    bias.assign(rng.normal(size=3))
    schedule = WarmupLinearDecay(0.1, 12, 3)
    optimizer = make_optimizer("lamb", model, schedule, weight_decay=0.05, clip_norm=None)
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
                ratio *= np.linalg.norm(weights[i]) / np.linalg.norm(ratio)
            weights[i] = weights[i] - rate * ratio
        np.testing.assert_allclose(kernel, weights[0], atol=1e-5)
        np.testing.assert_allclose(bias, weights[1], atol=1e-5)


def test_lamb_without_decay_is_that_of_keras_and_starts_from_zero():
    values = np.random.default_rng(0).normal(size=(5, 2, 3)).astype("float32")
    for start in (np.ones((2, 3)), np.zeros((2, 3))):  # of length 0: no scale
        found = []
        for kind in (Lamb, keras.optimizers.Lamb):
            variable = keras.Variable(start.astype("float32"))
            optimizer = kind(0.1)
            for value in values:
                optimizer.apply([tf.constant(value)], [variable])
            found.append(variable.numpy())
        np.testing.assert_allclose(*found, atol=1e-6)
        assert np.abs(found[0] - start).min() > 1e-3


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
        for variable, expected in zip(model.trainable_variables, weights, strict=True):
            np.testing.assert_array_equal(variable, expected)
    assert max(np.abs(a - w).max() for a, w in zip(average, weights, strict=True)) > 1e-3


# Of two blocks: how far from the top what is no block is, by the first part of its path.
DEPTHS = {"embeddings": 3, "relative_positions": 3, "convolution": 2}
HEADS = {
    "BertConfig": {"lm_transform", "lm_norm", "lm_bias"},
    "TransformerXLConfig": {"lm_softmax"},
    "XLNetConfig": {"lm_bias"},
    "GptConfig": set(),
    "Gpt2Config": {"final_norm"},
}


@pytest.mark.parametrize("family", DECAYED)
def test_which_layer_each_variable_is_of(family):
    head, _ = DECAYED[family]
    sizes = SIZES | {"num_layers": 2}
    more = MORE_FIELDS.get(family, {})
    config = getattr(models, family)(vocabulary_size=20, **sizes, **more)
    variables = models.build_model(config, head).trainable_variables
    expected = DEPTHS | dict.fromkeys(HEADS.get(family, HEADS["BertConfig"]), 0)
    # Blocks that share all their weights are one, below the head and above the embeddings.
    blocks = {"encoder_0": 2, "encoder_1": 1}
    if family == "AlbertConfig":
        blocks, expected = {"encoder": 1}, expected | {"embeddings": 2}
    expected |= blocks
    depths = layer_depths(variables)
    found = {v.path.partition("/")[0]: d for v, d in zip(variables, depths, strict=True)}
    assert found == {name: expected[name] for name in found}
    assert found.keys() >= blocks.keys() | {"embeddings"}
    heads = {name for name, depth in found.items() if depth == 0}
    assert heads == HEADS.get(family, HEADS["BertConfig"])


def test_each_of_two_models_counts_its_own_blocks():
    """A DeBERTa's generator has half of the blocks, of which the top one has the top's rate."""
    sizes = SIZES | {"num_layers": 4}
    config = models.DebertaV2Config(vocabulary_size=20, max_distance=8, num_buckets=4, **sizes)
    objective = ReplacedTokens()
    pair = objective.build(config)
    variables = Pretrainer(objective, objective.trained(pair)).trainable_variables
    found = {id(v): d for v, d in zip(variables, layer_depths(variables), strict=True)}
    for name, blocks in (("generator", 2), ("discriminator", 4)):
        model = pair[name]
        expected = {"embeddings": blocks + 1}
        expected |= {f"encoder_{i}": blocks - i for i in range(blocks)}
        for layer, depth in expected.items():
            for variable in model.get_layer(layer).trainable_variables:
                own = variable is not pair["generator"].get_layer("embeddings").token_table
                if own or name == "generator":
                    assert found[id(variable)] == depth, (name, variable.path)


def test_groups_of_shared_blocks_are_layers():
    config = models.AlbertConfig(vocabulary_size=20, num_groups=3, **SIZES | {"num_layers": 3})
    variables = models.build_model(config, "classifier", num_classes=2).trainable_variables
    depths = {}
    for variable, depth in zip(variables, layer_depths(variables), strict=True):
        depths.setdefault("/".join(variable.path.split("/")[:2]), set()).add(depth)
    blocks = {name: depth for name, depth in depths.items() if name.startswith("encoder")}
    assert blocks == {f"encoder/block_{i}": {3 - i} for i in range(3)}


def test_lower_layers_learn_and_decay_more_slowly():
    config = models.BertConfig(vocabulary_size=20, **SIZES | {"num_layers": 2})
    model = models.build_model(config, "classifier", num_classes=2)
    for name in ("adamw", "lamb"):
        optimizer = make_optimizer(name, model, 0.5, 0.1, layer_decay=0.5)
        variables = model.trainable_variables
        before = {v.path: np.ones(v.shape) for v in variables}
        for variable in variables:
            variable.assign(before[variable.path])
        optimizer.apply([tf.zeros_like(v) for v in variables], variables)
        for layer, depth in (("pooler", 0), ("encoder_1", 1), ("encoder_0", 2), ("embeddings", 3)):
            (moved,) = {
                round(float(1 - v.numpy().ravel()[0]), 6)
                for v in variables
                if v.path.startswith(layer) and is_decayed(v)
            }
            # The decay alone moves it: rate * lambda, or in LAMB by the rate.
            whole = 0.05 if name == "adamw" else 0.5
            assert moved == pytest.approx(whole * 0.5**depth, abs=1e-6)
    with pytest.raises(InputError, match="`layer_decay` is for models with encoder blocks"):
        inputs = keras.Input((4,))
        adamw(keras.Model(inputs, keras.layers.Dense(3)(inputs)), 0.1, layer_decay=0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schedule": "step"}, "schedule=step is unknown; use one of linear, cosine"),
        ({"optimizer": "sgd"}, "optimizer=sgd is unknown; use one of adamw, lamb"),
        ({"ema_decay": 1.0}, "ema_decay=1.0 must be below 1"),
        ({"layer_decay": 0.0}, "layer_decay=0.0 must be above 0"),
        ({"ema_decay": -0.1}, "ema_decay=-0.1 must be at least 0"),
        ({"warmup_share": 1.5}, "warmup_share=1.5 must be at most 1"),
        ({"accumulation_steps": 5}, "accumulation_steps=5 must divide batch_size=32"),
        ({"xla": True}, "xla=True compiles the steps anew for each length"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        TrainingConfig(**arguments)
