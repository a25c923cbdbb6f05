import numpy as np
import pytest
import tensorflow as tf

from tests.generation.walk import check_steps_equal_the_whole_model, logits_after
from tfnlp.generation import CausalDecoder
from tfnlp.models import BertConfig, Gpt2Config, GptConfig, TransformerXLConfig, build_model
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


@pytest.mark.quick
@pytest.mark.parametrize(
    "config",
    [
        GptConfig(**SIZES),
        Gpt2Config(**SIZES),
        Gpt2Config(**SIZES | {"num_heads": 4, "tie_embeddings": False, "activation": "relu"}),
    ],
    ids=["gpt", "gpt2", "gpt2 of its own sizes"],
)
def test_steps_equal_the_whole_model_whatever_padding_and_beams(config):
    model = build_model(config, "causal_lm")
    check_steps_equal_the_whole_model(model, CausalDecoder(model))


def test_half_precision_is_that_of_the_model():
    model = build_model(Gpt2Config(**SIZES), "causal_lm", dtype="mixed_bfloat16")
    ids = tf.constant([[1, 2, 3]])
    logits, state = CausalDecoder(model).start(ids, tf.ones_like(ids), beams=1, steps=2)
    assert logits.dtype == "float32" and state.keys[0].dtype == "bfloat16"
    np.testing.assert_allclose(logits, logits_after(model, [[1, 2, 3]]), atol=0.1)


@pytest.mark.parametrize(
    ("config", "head"),
    [(BertConfig(**SIZES), "masked_lm"), (Gpt2Config(**SIZES), None)]
    + [(TransformerXLConfig(num_layers=1, vocabulary_size=60, cutoffs=(20, 40)), "causal_lm")],
)
def test_other_models_are_refused(config, head):
    with pytest.raises(InputError, match="needs the head 'causal_lm' of Gpt or Gpt2"):
        CausalDecoder(build_model(config, head))


def test_a_cache_of_another_batch_is_refused():
    decoder = CausalDecoder(build_model(Gpt2Config(**SIZES), "causal_lm"))
    ids = tf.constant([[1, 2, 3]])
    _, state = decoder.start(ids, tf.ones_like(ids), beams=2, steps=2)
    for shape in ((2, 2), (1, 1)):
        with pytest.raises(InputError, match=r"^state is a cache of 1 prompts with 2 texts each"):
            decoder.step(tf.zeros(shape, "int32"), None, 0, state)
