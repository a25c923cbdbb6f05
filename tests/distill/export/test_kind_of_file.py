"""Which models are exported, as what."""

import keras
import pytest

from distill.export.tflite import kind_of_file
from tfnlp.layers import TextEmbedding
from tfnlp.models import ElmoConfig, TransformerXLConfig, build_model
from tfnlp.utils.errors import InputError


def functional_model(config):
    """A user's own, of tfnlp's layers."""
    ids = keras.Input((None,), dtype="int32")
    x = TextEmbedding(config.vocabulary_size, 8)(ids)
    return keras.Model(ids, {"logits": keras.layers.Dense(3)(x[:, 0])})


def elmo(config):
    return build_model(ElmoConfig(9, hidden_dim=4, filters=(2,)), "classifier", 2)


def with_memory(config):
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 4, "intermediate_dim": 4}
    config = TransformerXLConfig(config.vocabulary_size, cutoffs=(8,), **sizes)
    return build_model(config, "classifier", 3, memory=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (functional_model, "text_config"),
        (build_model, "`pooling`"),
        (lambda config: build_model(config, "masked_lm"), "'masked_lm'"),
        (elmo, "characters"),
        (with_memory, "memory=True"),
    ],
)
def test_models_without_an_export_are_refused(make, message, tiny_config):
    with pytest.raises(InputError, match=message):
        kind_of_file(make(tiny_config))
