import numpy as np
import pytest
import tensorflow as tf

from tests.generation.walk import random_steps
from tfnlp.generation import CausalDecoder, EncoderDecoderCache, decoder_of
from tfnlp.models import Gpt2Config, TransformerConfig, build_model
from tfnlp.utils.errors import InputError

SIZES = {
    "vocabulary_size": 60,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "max_length": 12,
    "initializer_range": 0.5,
}
START = 3
SOURCES = [[5, 9, 30, 7], [8], [11, 12, 13, 14, 15, 16]]
IDS = np.array([row + [0] * (6 - len(row)) for row in SOURCES], "int32")
MASK = np.array([[1] * len(row) + [0] * (6 - len(row)) for row in SOURCES], "int32")


def logits_after(model, source, rows):
    """The logits after lists of as many ids each, by the whole model, for one source."""
    source = np.array([source] * len(rows), "int32")
    inputs = {"encoder_token_ids": source, "encoder_padding_mask": 0 * source + 1}
    return model(inputs | {"decoder_token_ids": np.array(rows, "int32")})["logits"][:, -1]


@pytest.mark.quick
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"norm_first": True, "num_decoder_layers": 1, "num_decoder_heads": 4},
        {"share_embeddings": False, "target_vocabulary_size": 50, "tie_embeddings": False},
        {"output_bias": True, "max_length": None, "scale_embeddings": False},
    ],
    ids=["post-norm", "pre-norm", "two tables, own output", "any length"],
)
def test_steps_equal_the_whole_model_whatever_padding_and_beams(fields):
    config = TransformerConfig(**SIZES | {"start_token_id": START} | fields)
    model = build_model(config, "sequence_to_sequence")
    rng = np.random.default_rng(0)
    model.set_weights([w + rng.normal(size=w.shape, scale=0.1) for w in model.get_weights()])
    decoder = decoder_of(model)
    assert isinstance(decoder, EncoderDecoderCache) and decoder.start_token_id == START
    logits, state = decoder.start(tf.constant(IDS), tf.constant(MASK), beams=3, steps=4)
    for found, source in zip(logits, SOURCES, strict=True):
        np.testing.assert_allclose(found[None], logits_after(model, source, [[START]]), atol=1e-5)
    begun = [[[START]] * 3 for _ in SOURCES]
    for logits, texts, _ in random_steps(decoder, state, begun, 50, rng):
        for found, source, of in zip(logits, SOURCES, texts, strict=True):
            np.testing.assert_allclose(found, logits_after(model, source, of), atol=1e-5)
    heads = fields.get("num_decoder_heads", 2)
    assert state.source[0][0][0].shape == (3, heads, 6, 16 // heads)


def test_half_precision_is_that_of_the_model():
    config = TransformerConfig(**SIZES, start_token_id=START)
    model = build_model(config, "sequence_to_sequence", dtype="mixed_bfloat16")
    logits, state = decoder_of(model).start(tf.constant(IDS), tf.constant(MASK), 1, steps=2)
    assert logits.dtype == "float32" and state.keys[0].dtype == "bfloat16"
    assert state.source[0][0][0].dtype == "bfloat16"
    for found, source in zip(logits, SOURCES, strict=True):
        np.testing.assert_allclose(found[None], logits_after(model, source, [[START]]), atol=0.15)


def test_other_models_are_refused():
    with pytest.raises(
        InputError, match="needs the head 'sequence_to_sequence' of Transformer, but the model"
    ):
        EncoderDecoderCache(build_model(Gpt2Config(**SIZES), "causal_lm"))
    with pytest.raises(InputError, match="is a transformer with no head"):
        decoder_of(build_model(TransformerConfig(**SIZES)))
    assert isinstance(decoder_of(build_model(Gpt2Config(**SIZES), "causal_lm")), CausalDecoder)
