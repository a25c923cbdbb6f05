import numpy as np
import pytest
import tensorflow as tf

from tests.generation.walk import check_steps_equal_the_whole_model, random_steps
from tests.models.small import sizes
from tfnlp.generation import CausalDecoder, EncoderDecoderCache, decoder_of
from tfnlp.models import BertConfig, Gpt2Config, TransformerConfig, build_model
from tfnlp.utils.errors import InputError

SIZES = sizes(vocabulary_size=60, hidden_dim=16, max_length=12, initializer_range=0.5)
START = 3
SOURCES = [[5, 9, 30, 7], [8], [11, 12, 13, 14, 15, 16]]
IDS = np.array([row + [0] * (6 - len(row)) for row in SOURCES], "int32")
MASK = np.array([[1] * len(row) + [0] * (6 - len(row)) for row in SOURCES], "int32")


def test_steps_equal_the_whole_model_whatever_padding_and_beams():
    more = {"num_heads": 4, "tie_embeddings": False, "activation": "relu"}
    model = build_model(Gpt2Config(**SIZES | more), "causal_lm")
    check_steps_equal_the_whole_model(model, CausalDecoder(model))


def translated_after(model, source, rows):
    """The logits after lists of as many ids each, by the whole model, for one source."""
    source = np.array([source] * len(rows), "int32")
    inputs = {"encoder_token_ids": source, "encoder_padding_mask": 0 * source + 1}
    return model(inputs | {"decoder_token_ids": np.array(rows, "int32")})["logits"][:, -1]


def test_steps_of_a_translator_equal_the_whole_model():
    fields = {"num_decoder_layers": 1, "num_decoder_heads": 4, "max_length": None}
    fields |= {"share_embeddings": False, "target_vocabulary_size": 50, "tie_embeddings": False}
    config = TransformerConfig(**SIZES | {"start_token_id": START} | fields)
    model = build_model(config, "sequence_to_sequence")
    rng = np.random.default_rng(0)
    model.set_weights([w + rng.normal(size=w.shape, scale=0.1) for w in model.get_weights()])
    decoder = decoder_of(model)
    assert isinstance(decoder, EncoderDecoderCache) and decoder.start_token_id == START
    logits, state = decoder.start(tf.constant(IDS), tf.constant(MASK), beams=3, steps=4)
    for found, source in zip(logits, SOURCES, strict=True):
        np.testing.assert_allclose(
            found[None], translated_after(model, source, [[START]]), atol=1e-5
        )
    begun = [[[START]] * 3 for _ in SOURCES]
    for logits, texts, _ in random_steps(decoder, state, begun, 50, rng):
        for found, source, of in zip(logits, SOURCES, texts, strict=True):
            np.testing.assert_allclose(found, translated_after(model, source, of), atol=1e-5)
    assert state.source[0][0][0].shape == (3, 4, 6, 4)


def test_half_precision_of_a_translator_is_that_of_the_model():
    config = TransformerConfig(**SIZES, start_token_id=START)
    model = build_model(config, "sequence_to_sequence", dtype="mixed_bfloat16")
    logits, state = decoder_of(model).start(tf.constant(IDS), tf.constant(MASK), 1, steps=2)
    assert logits.dtype == "float32" and state.keys[0].dtype == "bfloat16"
    assert state.source[0][0][0].dtype == "bfloat16"
    for found, source in zip(logits, SOURCES, strict=True):
        np.testing.assert_allclose(
            found[None], translated_after(model, source, [[START]]), atol=0.15
        )


def test_other_models_are_refused():
    for make, config, head, name in (
        (CausalDecoder, BertConfig(**SIZES), "masked_lm", "'causal_lm' of Gpt or Gpt2"),
        (EncoderDecoderCache, Gpt2Config(**SIZES), "causal_lm", "'sequence_to_sequence' of Tran"),
        (decoder_of, TransformerConfig(**SIZES), None, "with the head None"),
    ):
        with pytest.raises(InputError, match=name):
            make(build_model(config, head))
