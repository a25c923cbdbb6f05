"""Folder format of convolutional networks and bags with tfnlp's names."""

from tfnlp.checkpoints.family import Family, architectures, of_head
from tfnlp.checkpoints.recurrent_map import own_fields, same, with_tuples
from tfnlp.configs import BagConfig, TextCnnConfig

_CLASSIFIER = of_head(same("classifier/kernel", "classifier/bias"))


def _family(config, stem, *paths):
    return Family(
        model_type=config.model_type,
        config=config,
        prefix=f"{config.model_type}.",
        fields=own_fields(config),
        encoder=same("embeddings/token_table", *paths),
        heads={"classifier": _CLASSIFIER, "chooser": _CLASSIFIER},
        architectures=architectures(stem, "classifier", "chooser"),
        decode=with_tuples,
    )


TEXTCNN = _family(
    TextCnnConfig,
    "TextCnn",
    *("static_embeddings/token_table", "convolution_{}/kernel", "convolution_{}/bias"),
)
BAG = _family(BagConfig, "Bag", "ngram_embeddings/token_table")
