"""Folder format of convolutional networks and bags with tfnlp's names."""

from tfnlp.checkpoints.checkpoint_map import CheckpointMap, architectures, of_head
from tfnlp.checkpoints.recurrent_map import own_fields, same, with_tuples
from tfnlp.configs import BagConfig, TextCnnConfig

_CLASSIFIER = of_head(same("classifier/kernel", "classifier/bias"))


def _map(config, stem, *paths):
    model_type = stem.lower()
    return CheckpointMap(
        model_type=model_type,
        config=config,
        prefix=f"{model_type}.",
        fields=own_fields(config),
        encoder=same("embeddings/token_table", *paths),
        heads={"classifier": _CLASSIFIER, "chooser": _CLASSIFIER},
        architectures=architectures(stem, "classifier", "chooser"),
        decode=with_tuples,
    )


TEXTCNN = _map(
    TextCnnConfig,
    "TextCnn",
    *("static_embeddings/token_table", "convolution_{}/kernel", "convolution_{}/bias"),
)
BAG = _map(BagConfig, "Bag", "ngram_embeddings/token_table")
