"""Rows of Parquet and Arrow files, and of folders that Hugging Face's `datasets` saved."""

import contextlib
import gzip
import io
import json
import zlib

from tfnlp.utils.errors import InputError, needs_packages
from tfnlp.utils.files import read_json

# Rows of a Parquet file in memory at once; an Arrow file has parts of its own.
ROWS = 1024
# By these `save_to_disk` marks the folder of a dataset, and that of several splits.
STATE, SPLITS = "state.json", "dataset_dict.json"


def is_saved_dataset(path):
    """Return whether a `Path` is a folder that `datasets` saved, of one split or of several."""
    return (path / STATE).is_file() or (path / SPLITS).is_file()


def arrow_rows(path, on_read=None, class_names=True):
    """Yield (place, row) of a .parquet or .arrow file, or of the files of a saved dataset.

    Args:
        path: the `Path`.
        on_read: a callback that is called with the number of bytes read of a file so far.
        class_names: whether a class of an Arrow file is its name, as `datasets` shows it, in
            place of its number. In a Parquet file it is a number.

    Raises:
        InputError: without pyarrow, for a damaged file, and for a folder of several splits.
    """
    number = 0
    for file in _files(path):
        names = _class_names(arrow_schema(file)) if class_names and not _is_parquet(file) else {}
        with _reading(file):
            for batch, read in (_parquet_parts if _is_parquet(file) else _arrow_parts)(file):
                for row in batch.to_pylist():
                    number += 1
                    row |= {column: _named(row[column], names[column]) for column in names}
                    yield f"example {number}", row
                if on_read:
                    on_read(read)


def arrow_schema(path):
    """Return the `pyarrow.Schema` of what `arrow_rows` reads."""
    file = _files(path)[0]
    with _reading(file):
        import pyarrow.parquet

        if _is_parquet(file):
            return pyarrow.parquet.read_schema(_source(file))
        with pyarrow.ipc.open_stream(_source(file)) as reader:
            return reader.schema


@contextlib.contextmanager
def _reading(file):
    """Raise an InputError in place of the errors of reading a file, and without pyarrow."""
    with needs_packages(str(file), "pyarrow"):
        import pyarrow
    try:
        yield
    except (pyarrow.ArrowException, OSError, EOFError, zlib.error) as e:
        kind = "Parquet" if _is_parquet(file) else "Arrow"
        raise InputError(f"{file} is no whole {kind} file ({e}).") from None


def _parquet_parts(file):
    """Yield (record batch, bytes read) of a Parquet file."""
    import pyarrow.parquet

    size, rows = file.stat().st_size, 0
    with pyarrow.parquet.ParquetFile(_source(file)) as reader:
        for group in range(reader.num_row_groups):  # of all at once, memory holds what was read
            for batch in reader.iter_batches(ROWS, [group]):
                rows += batch.num_rows
                yield batch, size * rows // reader.metadata.num_rows


def _arrow_parts(file):
    """Yield (record batch, bytes read) of an Arrow file, which is a stream."""
    import pyarrow

    with _source(file) as source, pyarrow.ipc.open_stream(source) as reader:
        for batch in reader:
            yield batch, min(source.tell(), file.stat().st_size)


def _source(file):
    """Return an open file of pyarrow; a gzipped one is unpacked in memory."""
    import pyarrow

    if file.name.lower().endswith(".gz"):
        return io.BytesIO(gzip.decompress(file.read_bytes()))
    return pyarrow.OSFile(str(file))


def _files(path):
    """Return the files of a saved dataset, or a file alone."""
    if not path.is_dir():
        return [path]
    if (path / SPLITS).is_file():
        splits = ", ".join(str(path / name) for name in read_json(path / SPLITS)["splits"])
        raise InputError(f"{path} holds several splits; give one of {splits}.")
    return [path / file["filename"] for file in read_json(path / STATE)["_data_files"]]


def _is_parquet(file):
    return file.name.lower().removesuffix(".gz").endswith(".parquet")


def _class_names(schema):
    """Return {column: names of its classes} of the columns for which `datasets` has names."""
    features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    names = {}
    for column, feature in features.get("info", {}).get("features", {}).items():
        feature = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
        if isinstance(feature, dict) and feature.get("names"):
            names[column] = feature["names"]
    return {column: names[column] for column in schema.names if column in names}


def _named(value, names):
    """Return the name of a class, of each in a list, or the value if it is no number of one."""
    if isinstance(value, list):
        return [_named(entry, names) for entry in value]
    is_class = isinstance(value, int) and 0 <= value < len(names)  # -1 is none
    return names[value] if is_class else value
