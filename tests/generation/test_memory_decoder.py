import numpy as np
import pytest
import tensorflow as tf

from tests.generation.walk import random_steps
from tfnlp.generation import Generator, MemoryDecoder, decoder_of
from tfnlp.generation.memory_decoder import TransformerXLDecoder, XLNetDecoder
from tfnlp.models import Gpt2Config, TransformerXLConfig, XLNetConfig, build_model
from tfnlp.text.wordpiece import WordPieceTokenizer
from tfnlp.utils.errors import InputError

pytestmark = pytest.mark.usefixtures("no_xla")

SIZES = {
    "vocabulary_size": 60,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "cutoffs": (20, 40),
    "div_value": 2,
    "initializer_range": 0.3,
}


OF_XLNET = {k: x for k, x in SIZES.items() if k not in ("cutoffs", "div_value")}


def logits_after(model, rows):
    """The logits after lists of as many ids each, by the whole model without a memory."""
    ids = np.array(rows, "int32")
    if model.head == "permutation_lm":  # one position more, which is asked for
        ids = np.pad(ids, ((0, 0), (0, 1)), constant_values=5)
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    if model.head == "permutation_lm":
        inputs["permutation_order"] = 0 * ids + np.arange(ids.shape[1], dtype="int32")
        inputs["target_mapping"] = 0 * ids[:, None] + np.eye(ids.shape[1], dtype="int32")[-1]
    return model(inputs)["logits"][:, -1]


@pytest.mark.parametrize(
    "config",
    [
        TransformerXLConfig(**SIZES, memory_length=4, same_length=True),
        TransformerXLConfig(
            **SIZES, same_length=False, share_biases=True, tie_embeddings=False
        ),
        XLNetConfig(**OF_XLNET, tie_embeddings=False),
    ],
    ids=["window", "own output", "xlnet"],
)
def test_steps_equal_the_whole_model_whatever_padding_and_beams(config):
    model = build_model(config, config.language_model)
    rng = np.random.default_rng(0)
    prompts = [rng.integers(0, 60, n).tolist() for n in (1, 6, 3)]
    ids = np.array([[9] * (6 - len(p)) + p for p in prompts], "int32")
    mask = np.array([[0] * (6 - len(p)) + [1] * len(p) for p in prompts], "int32")
    decoder = decoder_of(model)
    assert isinstance(decoder, MemoryDecoder)
    logits, state = decoder.start(tf.constant(ids), tf.constant(mask), beams=3, steps=4)
    for found, prompt in zip(logits, prompts, strict=True):
        np.testing.assert_allclose(found[None], logits_after(model, [prompt]), atol=1e-5)
    begun = [[p] * 3 for p in prompts]
    steps = list(random_steps(decoder, state, begun, 60, rng))
    for logits, texts, _ in steps:
        for found, of in zip(logits, texts, strict=True):
            np.testing.assert_allclose(found, logits_after(model, of), atol=1e-5)
    kept = 4 if config.memory_length == 4 else 10
    last = steps[-1][2]
    assert last.memory[1].shape == (3, 3, kept, 16) and last.real.shape == (3, 3, kept)


def test_texts_continue_prompts():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrst"]
    sizes = {"vocabulary_size": len(words), "cutoffs": (8,), "memory_length": 5}
    model = build_model(TransformerXLConfig(**SIZES | sizes), "causal_lm")
    generator = Generator(model, WordPieceTokenizer(words), max_new_tokens=4)
    for ids, (text,) in zip(([4, 5, 6], [7]), generator(["a b c", "d"]), strict=True):
        for token in text.token_ids:
            assert np.argmax(logits_after(model, [ids])[0]) == token
            ids = [*ids, token]


def test_other_models_are_refused():
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "vocabulary_size": 60}
    gpt2 = build_model(Gpt2Config(**sizes), "causal_lm")
    for make, head in ((TransformerXLDecoder, "causal_lm"), (XLNetDecoder, "permutation_lm")):
        with pytest.raises(InputError, match=f"needs the head '{head}' of"):
            make(gpt2)
    with pytest.raises(InputError, match="with the head None"):
        decoder_of(build_model(TransformerXLConfig(**SIZES)))
