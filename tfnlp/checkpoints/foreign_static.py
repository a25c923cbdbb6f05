"""Static vectors of model2vec and of sentence-transformers' StaticEmbedding, as others save them.

Model2vec's `mapping` has the row of each token, and it leaves unknown tokens out of a text.
"""

import numpy as np

from tfnlp.checkpoints.static_map import TABLE, WEIGHTS
from tfnlp.checkpoints.tensors import HeldTensors, TensorReader
from tfnlp.configs import StaticConfig
from tfnlp.text.tokenizers.tokenizer_files import foreign_static
from tfnlp.text.tokenizers.unframed import UnframedTokenizer
from tfnlp.utils.errors import InputError

# Table of sentence-transformers, and model2vec's row of each token.
THEIR_TABLE, MAPPING = "embedding.weight", "mapping"


def read_foreign_config(folder):
    """Return the `StaticConfig` of a folder, of whose weights the shapes alone are read.

    Raises:
        InputError: if the folder lacks the table.
    """
    reader = TensorReader(foreign_static(folder))
    size, width = reader.shape(_table_name(reader))
    return StaticConfig(reader.shape(MAPPING)[0] if MAPPING in reader.names() else size, width)


def _table_name(reader):
    """Return the name of the table, or raise an InputError."""
    for name in (THEIR_TABLE, TABLE):
        if name in reader.names():
            return name
    raise InputError(f"{reader.description} lacks the tensor {TABLE}; get it anew.")


def read_foreign_tensors(folder):
    """Return the tensors of a folder of model2vec or StaticEmbedding, as of one of `STATIC`.

    Raises:
        InputError: if the folder lacks a tensor, or has another number of rows than of tokens.
    """
    place = foreign_static(folder)
    reader = TensorReader(place)
    stored = {name: reader.read(name) for name in reader.names()}
    table = stored[_table_name(reader)]
    if MAPPING in stored:
        table = table[stored[MAPPING].astype("int64")]
    weights = stored.get(WEIGHTS, np.ones(len(table), "float32")).astype("float32")
    tokenizer = UnframedTokenizer.from_folder(place)
    if len({len(table), len(weights), tokenizer.vocabulary_size}) > 1:
        raise InputError(
            f"{reader.description} has {len(table)} vectors and {len(weights)} weights for "
            f"{tokenizer.vocabulary_size} tokens; get it anew."
        )
    if THEIR_TABLE not in stored and tokenizer.unknown_token_id is not None:
        weights[tokenizer.unknown_token_id] = 0
    return HeldTensors(reader.description, {TABLE: table.astype("float32"), WEIGHTS: weights})
