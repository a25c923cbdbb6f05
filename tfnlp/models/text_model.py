"""A functional model that knows the config and the head it was built from."""

import keras

from tfnlp.errors import InputError
from tfnlp.models.old_files import upgraded


@keras.saving.register_keras_serializable("tfnlp")
class TextModel(keras.Model):
    """A functional `keras.Model` with `text_config` and `head`, which saving and loading keep.

    `tfnlp.models.build_model` makes it.
    """

    # The arguments of a functional model and no others, so that Keras saves it as one.
    def __init__(self, inputs, outputs, name=None, **kwargs):
        super().__init__(inputs, outputs, name=name, **kwargs)
        self.text_config = None
        self.head = None

    def get_config(self):
        return super().get_config() | {
            "text_config": keras.saving.serialize_keras_object(self.text_config),
            "head": self.head,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = upgraded(config)
        text_config = keras.saving.deserialize_keras_object(config.pop("text_config"))
        head = config.pop("head")
        model = super().from_config(config, custom_objects)
        model.text_config, model.head = text_config, head
        return model


def config_of(model):
    """The config of a model that `build_model` built.

    Raises:
        InputError: for another model.
    """
    config = getattr(model, "text_config", None)
    if config is None:
        raise InputError(
            f"Model {model.name} was not built by tfnlp.models.build_model, so its config is "
            "not known; build it so, and set its weights."
        )
    return config


def check_vocabulary(tokenizer, model):
    """Raises an InputError unless the vocabulary fits the model's table of embeddings."""
    rows = config_of(model).vocabulary_size
    # Some tables are rounded up: DeBERTa v3 has 128,100 rows for 128,001 tokens.
    spare = min(128, rows // 100)
    if not rows - spare <= tokenizer.vocabulary_size <= rows:
        raise InputError(
            f"The vocabulary has {tokenizer.vocabulary_size} tokens, but the model's table "
            f"{rows}; give the tokenizer that belongs to the model."
        )
