import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.generation.walk import check_steps_equal_the_whole_model, random_steps
from tests.models.test_recurrent import SIZES, with_random_biases
from tests.models.test_recurrent_translator import SETTINGS, model_of, pairs
from tfnlp.generation.decoder_selection import decoder_of
from tfnlp.models import RecurrentConfig, build_model
from tfnlp.utils.errors import InputError


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_steps_of_a_language_model_equal_the_whole_one_whatever_padding_and_beams(cell):
    config = RecurrentConfig(cell=cell, tie_embeddings=cell == "lstm", **SIZES)
    model = with_random_biases(build_model(config, "causal_lm"))
    check_steps_equal_the_whole_model(model, decoder_of(model))


def translated(model, inputs, row, target):
    """The logits after a target, by the whole model, of one source without padding."""
    size = inputs["encoder_padding_mask"][row].sum()
    ids = np.array([[model.text_config.start_token_id, *target]], "int32")
    source = inputs["encoder_token_ids"][row : row + 1, :size]
    arguments = {"encoder_token_ids": source, "encoder_padding_mask": np.ones_like(source)}
    return model(arguments | {"decoder_token_ids": ids})["logits"][0, -1]


@pytest.mark.parametrize("setting", ["concat of a simple RNN", "no input feeding", "no attention"])
def test_steps_of_a_translator_equal_the_whole_one_whatever_padding_and_beams(setting):
    model, inputs = model_of(SETTINGS[setting] | {"start_token_id": 7}), pairs()
    decoder, rng = decoder_of(model), np.random.default_rng(0)
    source = [tf.constant(inputs[f"encoder_{name}"]) for name in ("token_ids", "padding_mask")]
    logits, state = decoder.start(*source, beams=3, steps=4)
    for row in range(3):
        np.testing.assert_allclose(logits[row], translated(model, inputs, row, []), atol=1e-5)
    begun = [[[]] * 3] * 3
    for logits, texts, _ in random_steps(decoder, state, begun, 60, rng, 3):
        for row, beam in ((0, 1), (1, 0), (1, 2), (2, 0)):
            expected = translated(model, inputs, row, texts[row][beam])
            np.testing.assert_allclose(logits[row, beam], expected, atol=1e-5)


def test_prompts_are_read_without_cudnn(monkeypatch):
    """Which would refuse padding at the left, and which XLA cannot compile."""
    seen, plain = [], keras.layers.LSTM.inner_loop

    def watched(layer, *args, **kwargs):
        seen.append(layer.use_cudnn)
        return plain(layer, *args, **kwargs)

    monkeypatch.setattr(keras.layers.LSTM, "inner_loop", watched)
    ids = tf.ones((1, 3), "int32")
    model = build_model(RecurrentConfig(**SIZES), "causal_lm")
    for one in (model, model_of()):
        seen.clear()
        decoder_of(one).start(ids, ids, beams=1, steps=2)
        assert seen and not any(seen)
    seen.clear()
    model(dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), ids))
    assert seen == ["auto", "auto"]


def test_other_heads_are_refused():
    with pytest.raises(InputError, match="needs the head 'causal_lm' of Recurrent, but the"):
        decoder_of(build_model(RecurrentConfig(**SIZES), "classifier", 2))
