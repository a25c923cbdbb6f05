"""Contextual embeddings of texts by layer (Devlin et al. 2019, section 5.3, table 7)."""

import importlib.util
import pathlib

import numpy as np
import tensorflow as tf

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, check_writable
from tfnlp.utils.progress import progress_bar

# Selections from the hidden states of all layers, a list of (B, L, D).
LAYERS = {
    "last": lambda states: states[-1],
    "second_to_last": lambda states: states[-2],
    "sum_last_four": lambda states: sum(states[-4:]),
    "concat_last_four": lambda states: tf.concat(states[-4:], axis=-1),
}
POOLINGS = ("mean", "first", "none")


def extract_features(model, batches, layers="last", pooling="mean"):
    """Compute the features of each text, in the original order.

    Args:
        model: an encoder with the output `hidden_states`.
        batches: `LengthBatches`.
        layers: one of `LAYERS`.
        pooling: "mean" over real tokens, "first" token, or "none" for a row for each token.

    Returns:
        A list of arrays, (D,) each, or (L, D) without pooling; D is four times as large for
        "concat_last_four".

    Raises:
        InputError: if the model has fewer layers than requested.
    """
    if "four" in layers and model.text_config.num_layers < 4:
        raise InputError(
            f"layers={layers} needs 4 layers, but the model has {model.text_config.num_layers}."
        )
    signature = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in model.input.items()}

    @tf.function(input_signature=[signature])
    def forward(inputs):
        x = tf.cast(LAYERS[layers](model(inputs, training=False)["hidden_states"]), "float32")
        if pooling == "first":
            return x[:, 0]
        if pooling == "none":
            return x
        mask = tf.cast(inputs["padding_mask"], "float32")[:, :, None]  # (B, L, 1)
        return tf.reduce_sum(x * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)

    features = [None] * len(batches.encodings)
    for indices in progress_bar(batches.batch_indices(), desc="extracting", unit="batch"):
        rows = forward(batches.batch(indices)[0]).numpy()
        for row, i in zip(rows, indices, strict=True):
            features[i] = row[: batches.lengths[i]] if pooling == "none" else row
    return features


def check_features_file(path):
    """Raise an `InputError` early if `write_features` could not write the file.

    That is a name that does not end in .npz or .parquet, a .parquet without pyarrow installed, or
    a folder without write permission.
    """
    path = pathlib.Path(path)
    if path.suffix not in (".npz", ".parquet"):
        raise InputError(f"{path} must end in .npz or .parquet.")
    if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise InputError(f"{path}: .parquet needs pyarrow; pip install pyarrow, or write a .npz.")
    check_writable(path)


def write_features(path, features, texts, encodings):
    """Write features as .npz or .parquet, by the file name.

    An .npz holds `features`, (texts, D). Without pooling they are (all tokens, D), and `text`
    holds the index of each token's text and `token_id` its id. A .parquet has a row for each
    feature vector, with the text itself.

    Raises:
        InputError: as in `check_features_file`.
    """
    path = pathlib.Path(path)
    check_features_file(path)
    tokens = features[0].ndim == 2
    columns = {"features": np.concatenate(features) if tokens else np.stack(features)}
    if tokens:
        counts = [len(rows) for rows in features]
        columns["text"] = np.repeat(np.arange(len(features)), counts)
        columns["token_id"] = np.concatenate([e.token_ids for e in encodings])
    if path.suffix == ".npz":
        with atomic_replace(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **columns)
    else:
        _write_parquet(path, columns, texts)


def _write_parquet(path, columns, texts):
    import pyarrow.parquet

    rows = columns.pop("features")
    numbers = columns.get("text", np.arange(len(texts)))
    table = {
        "text": [texts[i] for i in numbers],
        **{key: value for key, value in columns.items() if key != "text"},
        "features": pyarrow.FixedSizeListArray.from_arrays(rows.ravel(), rows.shape[1]),
    }
    with atomic_replace(path) as temporary:
        pyarrow.parquet.write_table(pyarrow.table(table), temporary)
