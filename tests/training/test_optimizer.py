import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp import models
from tfnlp.training import TrainingConfig
from tfnlp.training.optimizer import FusedAdamW, adamw, is_decayed
from tfnlp.training.schedules import WarmupLinearDecay


def test_schedule_rises_and_falls_linearly():
    schedule = WarmupLinearDecay(2.0, total_steps=10, warmup_steps=4)
    found = [float(schedule(step)) for step in (0, 2, 4, 7, 10, 12)]
    assert found == pytest.approx([0, 1, 2, 1, 0, 0])
    assert float(WarmupLinearDecay(2.0, 10)(0)) == 2
    with pytest.raises(ValueError, match="warmup_steps=11"):
        WarmupLinearDecay(1.0, 10, 11)


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
    optimizer = config.optimizer(model, steps_per_epoch=4)
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
