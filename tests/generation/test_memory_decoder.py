import pytest

from tests.generation.walk import check_steps_equal_the_whole_model
from tests.models.small import sizes
from tfnlp.generation import MemoryDecoder, decoder_of
from tfnlp.generation.memory_decoder import TransformerXLDecoder, XLNetDecoder
from tfnlp.models import Gpt2Config, TransformerXLConfig, XLNetConfig, build_model
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


def test_other_models_are_refused():
    gpt2, headless = (Gpt2Config(**OF_XLNET), "causal_lm"), (TransformerXLConfig(**SIZES), None)
    for make, model, word in (
        (TransformerXLDecoder, gpt2, "'causal_lm'"),
        (XLNetDecoder, gpt2, "'permutation_lm'"),
        (decoder_of, headless, "head None"),
    ):
        with pytest.raises(InputError, match=word):
            make(build_model(*model))
