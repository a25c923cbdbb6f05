"""Folder format of static vectors, which model2vec and sentence-transformers read."""

from tfnlp.checkpoints.checkpoint_map import (
    COMMON_HARMLESS,
    CheckpointMap,
    Weight,
    architectures,
    of_head,
)
from tfnlp.checkpoints.recurrent_map import own_fields, same
from tfnlp.configs import StaticConfig

# The names of model2vec.
TABLE, WEIGHTS = "embeddings", "weights"
_CLASSIFIER = of_head(same("classifier/kernel", "classifier/bias"))


def _encode(theirs, config):
    return theirs | {"normalize": True, "max_length": None}  # without which model2vec cuts texts


STATIC = CheckpointMap(
    model_type="static",
    config=StaticConfig,
    prefix="static.",
    fields=own_fields(StaticConfig),
    encoder=(
        Weight("embeddings/token_table", TABLE),
        Weight("token_weights/token_table", WEIGHTS, axes="V"),
    ),
    heads={"classifier": _CLASSIFIER, "chooser": _CLASSIFIER},
    architectures=architectures("Static", "classifier", "chooser"),
    harmless=COMMON_HARMLESS | {"normalize"},
    encode=_encode,
)
