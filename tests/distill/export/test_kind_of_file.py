"""Which models are exported, as what."""

import keras
import pytest

from distill.export.tflite import kind_of_file
from tfnlp.layers import TextEmbedding
from tfnlp.models import ElmoConfig, TransformerXLConfig, build_model
from tfnlp.utils.errors import InputError


class OtherModel(keras.Model):
    def call(self, inputs):
        return inputs


def functional_model(config):
    """A user's own, of tfnlp's layers."""
    ids = keras.Input((None,), dtype="int32")
    x = TextEmbedding(config.vocabulary_size, 8)(ids)
    return keras.Model(ids, {"logits": keras.layers.Dense(3)(x[:, 0])})


def with_memory(config):
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 4, "intermediate_dim": 4}
    config = TransformerXLConfig(config.vocabulary_size, cutoffs=(8,), **sizes)
    return build_model(config, "classifier", 3, memory=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            functional_model,
            "needs a model of .*build_model .* this Functional has no text_c",
        ),
        (lambda config: OtherModel(), "this OtherModel has no text_config"),
        (lambda config: keras.Sequential([keras.layers.Dense(2)]), "this Sequential has no"),
        (lambda config: None, "this NoneType has no text_config"),
        (
            build_model,
            r"the head None gives no answers .* give `pooling`",
        ),
        (
            lambda _: build_model(ElmoConfig(9, hidden_dim=4, filters=(2,)), "classifier", 2),
            "has the inputs characters too, .* reads no entities and no characters",
        ),
        (with_memory, "has the inputs memory too, .* without memory=True"),
    ],
)
def test_models_without_an_export_are_refused(make, message, tiny_config):
    with pytest.raises(InputError, match=message):
        kind_of_file(make(tiny_config))
