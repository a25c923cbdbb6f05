import numpy as np
import pytest

from tests.generation.walk import check_steps_equal_the_whole_model, logits_after
from tests.models.small import sizes
from tfnlp.generation import Generator, MemoryDecoder, decoder_of
from tfnlp.generation.memory_decoder import TransformerXLDecoder, XLNetDecoder
from tfnlp.models import Gpt2Config, TransformerXLConfig, XLNetConfig, build_model
from tfnlp.text.tokenizers.wordpiece import WordPieceTokenizer
from tfnlp.utils.errors import InputError

pytestmark = pytest.mark.usefixtures("no_xla")

OF_XLNET = sizes(vocabulary_size=60, hidden_dim=16)
SIZES = OF_XLNET | {"cutoffs": (20, 40), "div_value": 2}


@pytest.mark.parametrize(
    "config",
    [
        TransformerXLConfig(**SIZES, memory_length=4, same_length=True),
        TransformerXLConfig(**SIZES, same_length=False, share_biases=True, tie_embeddings=False),
        XLNetConfig(**OF_XLNET, tie_embeddings=False),
    ],
    ids=["window", "own output", "xlnet"],
)
def test_steps_equal_the_whole_model_whatever_padding_and_beams(config):
    model = build_model(config, config.language_model)
    decoder = decoder_of(model)
    assert isinstance(decoder, MemoryDecoder)
    state = check_steps_equal_the_whole_model(model, decoder)
    kept = 4 if config.memory_length == 4 else 10
    assert state.memory[1].shape == (3, 3, kept, 16) and state.real.shape == (3, 3, kept)


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
