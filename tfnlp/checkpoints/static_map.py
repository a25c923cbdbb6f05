"""Folder format of static vectors, which model2vec and sentence-transformers read.

Their folders without a config.json of tfnlp are read too, with a row for each token: model2vec's
`mapping` has the row of each, and it leaves unknown tokens out.
"""

import numpy as np

from tfnlp.checkpoints.checkpoint_map import (
    COMMON_HARMLESS,
    CheckpointMap,
    Weight,
    architectures,
    of_head,
)
from tfnlp.checkpoints.recurrent_map import own_fields, same
from tfnlp.checkpoints.tensors import TensorReader
from tfnlp.configs import StaticConfig
from tfnlp.text.tokenizers.tokenizer_files import foreign_static
from tfnlp.text.tokenizers.unframed import UnframedTokenizer
from tfnlp.utils.errors import InputError

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


class ForeignReader:
    """Tensors of a folder of model2vec or StaticEmbedding, as of one that `STATIC` writes.

    Raises:
        InputError: if the folder lacks a tensor, or has another number of rows than of tokens.
    """

    def __init__(self, folder):
        place = foreign_static(folder)
        reader = TensorReader(place)
        self.description = reader.description
        stored = {name: reader.read(name) for name in reader.names()}
        table = stored.get("embedding.weight", stored.get(TABLE))
        if table is None:
            raise InputError(f"{self.description} lacks the tensor {TABLE}; get it anew.")
        if "mapping" in stored:
            table = table[stored["mapping"].astype("int64")]
        weights = stored.get(WEIGHTS, np.ones(len(table), "float32")).astype("float32")
        tokenizer = UnframedTokenizer.from_folder(place)
        if len({len(table), len(weights), tokenizer.vocabulary_size}) > 1:
            raise InputError(
                f"{self.description} has {len(table)} vectors and {len(weights)} weights for "
                f"{tokenizer.vocabulary_size} tokens; get it anew."
            )
        if "embedding.weight" not in stored and tokenizer.unknown_token_id is not None:
            weights[tokenizer.unknown_token_id] = 0
        self._tensors = {TABLE: table.astype("float32"), WEIGHTS: weights}

    def config(self):
        """Return the `StaticConfig` of the tensors."""
        return StaticConfig(*self.shape(TABLE))

    def size(self):
        """Return the size of the tensors in bytes."""
        return sum(value.nbytes for value in self._tensors.values())

    def names(self):
        """Return the names of the tensors."""
        return [*self._tensors]

    def shape(self, name):
        """Return a tensor's shape."""
        return self._tensors[name].shape

    def read(self, name):
        """Return a tensor."""
        return self._tensors[name]
