import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.models.recurrent_witness import translate
from tests.models.test_recurrent import with_random_biases
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import RecurrentTranslatorConfig, build_model
from tfnlp.models.recurrent_translator import ReadsOwnTokens

SIZES = {"vocabulary_size": 60, "num_layers": 2, "hidden_dim": 16, "initializer_range": 0.5}
REVERSED = {"bidirectional": False, "reverse_source": True}
SETTINGS = {
    "general": {},
    "dot of a reversed GRU": {"attention": "dot", "cell": "gru", **REVERSED},
    "concat of a simple RNN": {"attention": "concat", "cell": "rnn", "tie_embeddings": False},
    "no input feeding": {"input_feeding": False, "share_embeddings": False},
    "no attention": {"attention": None, "bidirectional": False, "num_layers": 1},
}


def model_of(fields=None):
    config = RecurrentTranslatorConfig(**SIZES | (fields or {}))
    return with_random_biases(build_model(config, "sequence_to_sequence"))


def pairs(seed=0, sources=7, targets=5):
    rng = np.random.default_rng(seed)
    mask = np.ones((3, sources), "int32")
    mask[1, 4:] = 0
    return {
        "encoder_token_ids": rng.integers(0, 60, (3, sources)).astype("int32"),
        "encoder_padding_mask": mask,
        "decoder_token_ids": rng.integers(0, 60, (3, targets)).astype("int32"),
    }


@pytest.mark.parametrize("fields", SETTINGS.values(), ids=SETTINGS)
def test_logits_and_alignment_are_those_of_numpy_and_survive_saving(fields, tmp_path):
    model, inputs = model_of(fields), pairs()
    outputs = model(inputs)
    for row in range(3):
        size = inputs["encoder_padding_mask"][row].sum()
        source = inputs["encoder_token_ids"][row, :size]
        logits, weights = translate(model, source, inputs["decoder_token_ids"][row])
        np.testing.assert_allclose(outputs["logits"][row], logits, atol=1e-5)
        if model.text_config.attention is None:
            assert "attention_weights" not in outputs
            continue
        found = outputs["attention_weights"][row].numpy()
        np.testing.assert_allclose(found[:, :size], weights, atol=1e-6)
        assert not found[:, size:].any()
    if "share_embeddings" not in fields:
        return
    model.save(tmp_path / "model.keras")
    save_model(model, tmp_path / "folder")
    for other in (
        keras.models.load_model(tmp_path / "model.keras"),
        load_model(tmp_path / "folder", "sequence_to_sequence"),
    ):
        assert other.text_config == model.text_config
        np.testing.assert_array_equal(other(inputs)["logits"], outputs["logits"])


def test_own_tokens_are_the_best_of_the_step_before():
    model, inputs = model_of(), pairs()
    sampled = ReadsOwnTokens(model)
    own = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]], "int32")
    # What the decoder reads in their place, from the plain model, token by token.
    read = inputs["decoder_token_ids"].copy()
    for t in range(1, 5):
        best = np.argmax(model(inputs | {"decoder_token_ids": read})["logits"][:, t - 1], axis=-1)
        read[:, t] = np.where(own[:, t] > 0, best, read[:, t])
    assert (read != inputs["decoder_token_ids"]).sum() >= 5
    expected = model(inputs | {"decoder_token_ids": read})["logits"]
    found = sampled(inputs | {"feed_predictions": own})["logits"]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # The gradients are those of the tokens that were read, of all weights.
    gradients = []
    for run in (
        lambda: sampled(inputs | {"feed_predictions": own}),
        lambda: model(inputs | {"decoder_token_ids": read}),
    ):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(run()["logits"] ** 2)
        gradients.append(tape.gradient(loss, model.trainable_variables))
    for variable, a, b in zip(model.trainable_variables, *gradients, strict=True):
        a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=variable.path)


def test_dropout_is_drawn_in_training_alone():
    model, inputs = model_of({"dropout": 0.5}), pairs()
    outputs = model(inputs, training=True)
    share = np.mean(outputs["sequence_output"].numpy() == 0)
    assert 0.3 < share < 0.7
    still = model_of({"dropout": 0.0})
    still.set_weights(model.get_weights())
    np.testing.assert_array_equal(model(inputs)["logits"], still(inputs, training=True)["logits"])
