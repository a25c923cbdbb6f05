"""Copies of a model keep its config, its head and what it shares; lengths fit its positions."""

import copy
import functools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from distill.learning.teacher_outputs import compute_teacher_outputs
from tests.models.small import sizes
from tfnlp.checkpoints import load_model, save_model
from tfnlp.layers import LearnedPositionEncoding, TextEmbedding
from tfnlp.models import (
    AlbertConfig,
    BertConfig,
    DebertaV2Config,
    RobertaConfig,
    TransformerXLConfig,
    XLNetConfig,
    build_model,
    check_lengths,
    check_vocabulary,
    config_of,
    max_positions,
)
from tfnlp.models.text_model import submodel
from tfnlp.text import Encoding, LengthBatches
from tfnlp.training.run.inference import predictor
from tfnlp.utils.errors import InputError

SIZES = sizes()
MODELS = {
    "bert": (BertConfig(max_length=16, **SIZES), "masked_lm"),
    "untied": (BertConfig(max_length=16, tie_embeddings=False, **SIZES), "masked_lm"),
    "albert": (AlbertConfig(max_length=16, embedding_dim=4, **SIZES), "masked_lm"),
    "deberta": (
        DebertaV2Config(max_length=16, num_buckets=4, enhanced_mask_decoder=True, **SIZES),
        "masked_lm",
    ),
    "transformer_xl": (
        TransformerXLConfig(
            cutoffs=(8,), embedding_dim=8, div_value=2, share_biases=True, **SIZES
        ),
        "causal_lm",
    ),
}


def make_inputs():
    ids = np.random.default_rng(0).integers(1, 20, (2, 5)).astype("int32")
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}


@pytest.mark.parametrize("name", ["untied", "albert", "deberta", "transformer_xl"])
def test_clones_are_models_of_their_own(name, tmp_path):
    config, head = MODELS[name]
    model = build_model(config, head)
    inputs = make_inputs()
    expected = model(inputs)["logits"].numpy()
    clone = keras.models.clone_model(model)
    assert type(clone) is type(model)
    assert (clone.text_config, clone.head) == (config, head)
    assert [(w.path, w.shape) for w in clone.weights] == [(w.path, w.shape) for w in model.weights]
    assert not {id(w) for w in clone.weights} & {id(w) for w in model.weights}
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(inputs)["logits"], expected, atol=1e-6)
    # The output is tied where the model's is, and to the clone's own table.
    tables = ("embeddings/token_table", "embeddings/table_0")
    table = next(w for w in clone.weights if w.path in tables)
    unseen = np.setdiff1d(np.arange(1, 8), inputs["token_ids"])
    value = table.numpy()
    value[unseen] *= -2
    table.assign(value)
    change = np.abs(clone(inputs)["logits"] - expected)[..., unseen].max()
    assert change == 0 if name == "untied" else change > 0.1
    np.testing.assert_array_equal(model(inputs)["logits"], expected)
    if name != "deberta":  # its file is read by the names of its tensors alone
        save_model(clone, tmp_path)
        assert load_model(tmp_path, head).text_config == config


def test_other_copies_keep_config_and_head():
    model = build_model(*MODELS["bert"])
    for other in (copy.deepcopy(model), type(model).from_config(model.get_config())):
        assert (config_of(other), other.head) == MODELS["bert"]
    with pytest.raises(InputError, match="was not built by"):
        config_of(keras.Model(model.inputs, model(model.input)["logits"][:, 0]))


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (TextEmbedding(20, 4, max_length=6), tf.TensorSpec((None, None), "int32")),
        (LearnedPositionEncoding(6), tf.TensorSpec((None, None, 4), "float32")),
    ],
)
def test_unknown_lengths_are_checked_when_the_graph_runs(layer, inputs):
    call = tf.function(layer, input_signature=[inputs])
    fits, longer = (tf.ones((2, n, 4)[: len(inputs.shape)], inputs.dtype) for n in (6, 7))
    assert call(fits).shape == (2, 6, 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="only max_length=6 positions"):
        call(longer)
    with pytest.raises(ValueError, match="length 7, but there are only max_length=6 positions"):
        layer(longer)


def test_vocabularies_fit_the_table():
    model = build_model(*MODELS["bert"])
    check_vocabulary(types.SimpleNamespace(vocabulary_size=20), model)
    for size in (19, 21):
        with pytest.raises(InputError, match=f"has {size} tokens, but the model's table 20"):
            check_vocabulary(types.SimpleNamespace(vocabulary_size=size), model)


def test_texts_fit_the_positions():
    batches = LengthBatches([Encoding([1] * n, [0] * n) for n in (3, 17)], 1)
    model, roberta = (build_model(c(max_length=16, **SIZES)) for c in (BertConfig, RobertaConfig))
    deberta = build_model(*MODELS["deberta"])
    # Of several tables the shortest counts.
    x = keras.Input((None, 4))
    both = keras.Model(x, LearnedPositionEncoding(16)(LearnedPositionEncoding(20)(x)))
    for call in (
        *(functools.partial(check_lengths, batches, m) for m in (model, roberta, deberta, both)),
        lambda: predictor(model)(batches),
        lambda: compute_teacher_outputs(model, batches, [("logits", None)]),
    ):
        with pytest.raises(InputError, match=r"has 17 tokens, .* only 16 positions; .*=16"):
            call()
    assert max_positions(model) == max_positions(deberta) == 16
    # Relative positions alone take any length.
    for config in (DebertaV2Config(max_length=16, num_buckets=4, **SIZES), XLNetConfig(**SIZES)):
        assert max_positions(build_model(config)) is None
        check_lengths(batches, build_model(config))
    check_lengths(LengthBatches([], 1), model)


def test_losses_and_metrics_are_of_outputs_with_labels(no_graphs):
    config = BertConfig(max_length=16, **SIZES | {"num_layers": 1})
    model = build_model(config, "answerer", hidden_states=True)
    labels, weights = np.arange(2), np.arange(2) + 1.0
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss={"end_logits": loss}, metrics={"end_logits": ["accuracy"]})
    asked = {"sample_weight": {"end_logits": weights}, "verbose": 0, "return_dict": True}
    found = model.evaluate(make_inputs(), {"end_logits": labels}, **asked)
    logits = model(make_inputs())["end_logits"].numpy()
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(2), labels]
    assert found["loss"] == pytest.approx(np.mean(losses * weights), rel=1e-4)
    assert found["accuracy"] == pytest.approx(np.mean(logits.argmax(1) == labels))
    model.compile("sgd", loss={"logit": loss})
    with pytest.raises(KeyError, match="logit"):
        model.fit(make_inputs(), {"logit": labels}, verbose=0)


@pytest.mark.filterwarnings("error")
def test_a_part_of_a_chooser_has_the_names_of_its_inputs(tiny_config):
    model = build_model(tiny_config, "chooser")
    inputs = {key: model.get_layer(f"merge_{key}").output for key in model.input}
    part = submodel(inputs, {"logits": model.get_layer("choices").input[0]})
    ids = np.array([[2, 5, 6, 3], [2, 7, 3, 0]])
    whole = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids != 0}
    expected = model({key: x[None] for key, x in whole.items()})["logits"][0]
    np.testing.assert_allclose(part(whole)["logits"][:, 0], expected, atol=1e-6)
