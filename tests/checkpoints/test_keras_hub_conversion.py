"""Models that are converted from keras-hub and to it, and our blocks within its models."""

import dataclasses
import functools
import json

import keras
import keras_hub
import numpy as np
import pytest

from tests.checkpoints.keras_hub_backbones import (
    FAMILIES,
    SIZES,
    backbone,
    check_states,
    make_inputs,
    randomized,
)
from tests.parity.compare import near
from tfnlp.checkpoints import from_keras_hub, to_keras_hub, with_encoder_blocks
from tfnlp.layers import MultiHeadAttention
from tfnlp.models import (
    AlbertConfig,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    Gpt2Config,
    GptConfig,
    RobertaConfig,
    build_model,
)
from tfnlp.text import train_byte_level_bpe
from tfnlp.utils.errors import InputError


def run(model, length=None):
    """Return the states or logits of a model of ours or of keras-hub, and the inputs."""
    inputs = {x.name: make_inputs()[x.name][:, :length] for x in model.inputs}
    outputs = model(inputs)
    if isinstance(outputs, dict):
        outputs = outputs.get("logits", outputs["sequence_output"])
    real = make_inputs()["padding_mask"][:, :length, None]
    return np.asarray(outputs) * (real if len(outputs.shape) == 3 else 1)


def same_bits(model, other, but=()):
    others = {variable.path: variable for variable in other.weights}
    compared = [variable for variable in model.weights if variable.path not in but]
    assert len(compared) > 20
    for variable in compared:
        np.testing.assert_array_equal(variable, others[variable.path], variable.path)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_backbone_comes_here_and_goes_back(name):
    theirs = backbone(name)
    ours, tokenizer = from_keras_hub(theirs)
    assert tokenizer is None and ours.head is None
    check_states(ours, theirs, pooled=name in ("bert", "albert", "albert_wide"))
    check_states(ours, theirs, pooled=False, length=4)
    back = to_keras_hub(ours)
    # ELECTRA's pooler is none of the paper's.
    but = ("pooled_dense/kernel", "pooled_dense/bias") if "electra" in name else ()
    same_bits(theirs, back, but)
    if name != "xlnet":  # whose texts keras-hub mixes up
        np.testing.assert_array_equal(run(back), run(theirs))


S = SIZES | {"max_length": 16}
OURS = {
    "bert": (BertConfig(**S, layer_norm_epsilon=1e-3), "classifier"),
    "roberta": (RobertaConfig(**S, activation="gelu_tanh"), "classifier"),
    "distilbert": (DistilBertConfig(**S), "classifier"),
    "albert": (AlbertConfig(**S, embedding_dim=6, classifier_dropout=0.3), "classifier"),
    "deberta": (DebertaV2Config(**S, num_buckets=4, max_distance=16), "classifier"),
    "gpt2": (Gpt2Config(**S), "causal_lm"),
}


@pytest.mark.parametrize("name", OURS)
def test_a_model_with_a_head_goes_there_and_comes_back(name):
    config, head = OURS[name]
    ours = randomized(build_model(config, head, 3 if head == "classifier" else None))
    theirs = to_keras_hub(ours)
    assert isinstance(theirs, keras_hub.models.Task)
    back, _ = from_keras_hub(theirs)
    if name != "roberta":  # whose segment is added to the positions there
        same_bits(ours, back)
    rate = {"classifier_dropout": config.head_dropout} if head == "classifier" else {}
    assert back.text_config == dataclasses.replace(config, **rate) and back.head == head
    for length in (4, 12):
        inputs = {name: x[:, :length] for name, x in make_inputs().items()}
        inputs["segment_ids"] *= "segment_ids" in {x.name for x in theirs.inputs}
        expected = np.asarray(ours(inputs)["logits"])
        if head == "causal_lm":
            expected = expected * inputs["padding_mask"][..., None]
        near(run(theirs, length), expected, 1e-5)


def test_texts_of_an_xlnet_stay_apart():
    ours, _ = from_keras_hub(backbone("xlnet"))
    near(run(to_keras_hub(ours)), run(ours), 1e-5)
    assert np.abs(run(to_keras_hub(ours, exact=False)) - run(ours)).max() > 1


def test_the_gelu_is_what_the_caller_says():
    ours = randomized(build_model(BertConfig(**S)))
    plain = to_keras_hub(ours, exact=False)  # with the tanh
    difference = np.abs(run(plain) - run(ours)).max()
    assert 1e-5 < difference < 1e-2
    near(run(from_keras_hub(plain)[0]), run(plain), 1e-5)
    near(run(from_keras_hub(plain, activation="gelu")[0]), run(ours), 1e-5)


def test_what_keras_hub_lacks_is_named(caplog):
    rates = BertConfig(**S, attention_dropout=0.0)
    for name, config, options in (
        ("family=openai-gpt", GptConfig(**S), {}),
        ("head_dim=4, only None", BertConfig(**S, head_dim=4), {}),
        ("max_distance=512, only 16", DebertaV2Config(**S), {"dropout": 0.1}),
        ("attention_dropout=0.0, only 0.1; give dropout=", rates, {}),
    ):
        with pytest.raises(InputError, match=name):
            to_keras_hub(build_model(config), **options)
    with caplog.at_level("WARNING"):
        theirs = to_keras_hub(build_model(rates, "masked_lm"), dropout=0.2)
    assert theirs.dropout == 0.2 and isinstance(theirs, keras_hub.models.BertBackbone)
    assert "no place for the model's lm_bias, lm_norm, lm_transform." in caplog.text
    assert "random: pooled_dense/bias, " in caplog.text
    assert "keras-hub's own activation (gelu_tanh)." in caplog.text
    with pytest.raises(InputError, match="the class tfnlp>TextModel is none"):
        from_keras_hub(build_model(rates))


def test_a_preprocessor_brings_its_tokenizer(tmp_path):
    train_byte_level_bpe(["a film", "not a film at all"] * 3, 300, "roberta").save(tmp_path)
    vocabulary = json.loads((tmp_path / "vocab.json").read_text())
    names = list(vocabulary)
    names.remove("<pad>")
    vocabulary = {name: i for i, name in enumerate([*names[:4], "<pad>", *names[4:]])}
    merges = (tmp_path / "merges.txt").read_text().splitlines()[1:]
    tokenizer = keras_hub.models.RobertaTokenizer(vocabulary=vocabulary, merges=merges)
    preprocessor = keras_hub.models.RobertaTextClassifierPreprocessor(tokenizer, 12)
    task = keras_hub.models.RobertaTextClassifier(backbone("roberta"), 2, preprocessor)
    model, found = from_keras_hub(task)
    assert model.text_config.pad_token_id == found.pad_token_id == 4
    ids = found.encode(["not a film"])[0].token_ids
    assert [*ids] == [int(i) for i in preprocessor("not a film")["token_ids"][: len(ids)]]


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_our_blocks_take_the_place_of_keras_hubs(name, tmp_path):
    theirs = backbone(name)
    ours = with_encoder_blocks(theirs)
    blocks = [layer for layer in ours.layers if type(layer).__name__ == "EncoderBlock"]
    assert len(blocks) == 2 and len(ours.weights) == len(theirs.weights)
    near(run(ours), run(theirs), 1e-5)
    near(run(ours, 4), run(theirs, 4), 1e-5)
    # Other layers are shared.
    table = theirs.token_embedding.embeddings
    table.assign(2 * table)
    near(run(ours), run(theirs), 1e-5)
    ours.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        run(keras.saving.load_model(tmp_path / "model.keras")), run(ours)
    )


def test_any_attention_takes_its_place_and_tasks_are_built_on_it():
    def make_blockwise(attention):
        whole = MultiHeadAttention.from_keras(attention)
        layer = MultiHeadAttention.from_config(whole.get_config() | {"block_size": 4})
        layer.build((None, None, 16))
        layer.set_weights(whole.get_weights())
        return layer

    theirs = backbone("bert")
    make = functools.partial(keras_hub.models.BertTextClassifier, num_classes=2, dropout=0.0)
    expected, task = make(theirs), make(with_encoder_blocks(theirs, make_blockwise))
    task.output_dense.set_weights(expected.output_dense.get_weights())
    near(run(task), run(expected), 1e-5)
