"""Files of features, without TensorFlow."""

import importlib.util
import pathlib

import numpy as np

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, check_writable


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
