"""Tables of predictions beside the columns of their inputs: CSV, TSV, JSON Lines and Arrow."""

import collections
import dataclasses
import pathlib
import re
import uuid

from tfnlp.pipelines.inputs import Columns
from tfnlp.text.reading.arrow_files import STATE, arrow_schema
from tfnlp.text.reading.readers import ARROW, format_of, read_header, read_rows
from tfnlp.utils.errors import InputError, needs_packages
from tfnlp.utils.files import (
    atomic_replace,
    check_writable,
    json_text,
    make_folder,
    write_json,
    write_json_lines,
)
from tfnlp.utils.formatting import one_line

# Endings of tables; without one it is a folder for `load_from_disk` of `datasets`.
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")


@dataclasses.dataclass
class InputTable:
    """Rows of inputs, which predictions join.

    Args:
        names: the columns.
        rows: a dict for each input.
        schema: the `pyarrow.Schema` of the file that they are from; None if it has none.
    """

    names: list
    rows: list
    schema: object = None


def check_table(path):
    """Raise an InputError before long work if no table can be written to a path."""
    path = pathlib.Path(path)
    if path.suffix not in (*ENDINGS, ""):
        raise InputError(
            f"output={path} must end in {', '.join(ENDINGS)}, or have no ending for a folder that "
            "`datasets` loads."
        )
    if path.suffix in (".parquet", ""):
        with needs_packages(f"output={path}", "pyarrow"):
            import pyarrow  # noqa: F401
    if not path.suffix and path.exists():
        raise InputError(f"output={path} exists; give a folder that does not.")
    check_writable(path)


def input_table(task, inputs, path=None, columns=None):
    """Return the `InputTable` of inputs.

    Args:
        task: a `PredictionTask`.
        inputs: the `Inputs` that it read.
        path: of their file; None if they are of none. If its rows are the inputs, all its columns
            are kept, else the table has their texts.
        columns: the `Columns` that they were read by.

    Raises:
        InputError: if two columns have one name, or a row holds no input.
    """
    schema = None
    if path is not None and task.has_rows(path, columns or Columns()):
        path = pathlib.Path(path)
        names, rows = read_header(path), [*read_rows(path)]
        schema = arrow_schema(path) if format_of(path) in ARROW else None
    else:
        rows = _rows(task, inputs)
        names = list(rows[0]) if rows else []
    counts = collections.Counter([*names, *task.columns])
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(
            f"{path or 'The inputs'}: with the predictions two columns are called {twice[0]!r}; "
            "rename it."
        )
    if len(rows) != len(inputs.texts):
        raise InputError(
            f"{path} has {len(rows)} rows, but {len(inputs.texts)} with a text; leave out the "
            "others."
        )
    return InputTable(names, rows, schema)


def _rows(task, inputs):
    """Return the rows of inputs that are no rows of a table."""
    columns = {"id": inputs.ids, task.text_column: inputs.texts}
    columns[task.second_column] = inputs.second_texts
    columns["gold"] = inputs.gold and [task.gold_text(gold) for gold in inputs.gold]
    columns = {name: column for name, column in columns.items() if column is not None}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def write_table(path, table, task, predictions):
    """Write predictions beside their inputs.

    Args:
        path: the file, .csv, .tsv, .jsonl or .parquet, or a folder. CSV and TSV have lists as
            JSON, and TSV spaces in place of tabs and line breaks.
        table: the `InputTable` of the inputs.
        task: the `PredictionTask`, whose `columns` are added.
        predictions: of `predict_inputs`.

    Raises:
        InputError: if the file cannot be written, or a column has values of several types and
            Arrow has none for them.
    """
    path = pathlib.Path(path)
    names = [*table.names, *task.columns]
    if path.suffix in (".csv", ".tsv"):
        added = map(task.cells, predictions)
        rows = zip(table.rows, added, strict=True)
        lines = ([*(row.get(n) for n in table.names), *values] for row, values in rows)
        mark, written = (",", _quoted) if path.suffix == ".csv" else ("\t", one_line)
        with atomic_replace(path) as file, open(file, "w", encoding="utf-8", newline="") as out:
            for line in [names, *lines]:
                out.write(mark.join(written(_cell(value)) for value in line) + "\n")
        return
    added = [dict(zip(task.columns, task.values(x), strict=True)) for x in predictions]
    if path.suffix == ".jsonl":
        rows = (row | values for row, values in zip(table.rows, added, strict=True))
        return write_json_lines(path, rows)
    _write_arrow(path, _arrow_table(path, table, task, added))


def _cell(value):
    if value is None or isinstance(value, str):
        return value or ""
    return json_text(value, default=str)


def _quoted(cell):
    """Return a cell of a CSV, in quotes where it needs them."""
    # The csv module leaves a space at the beginning, which readers of "a, b" skip, without.
    return '"' + cell.replace('"', '""') + '"' if re.search(r'[,"\r\n]|^ ', cell) else cell


def _arrow_table(path, table, task, added):
    """Return a `pyarrow.Table` of the inputs, with their own types, and of the predictions."""
    import pyarrow

    try:
        if table.schema is None:
            entries = {name: [row.get(name) for row in table.rows] for name in table.names}
            joined = pyarrow.table(entries)
        else:
            joined = pyarrow.Table.from_pylist(table.rows, schema=table.schema)
        for number, name in enumerate(task.columns):
            values = [row[name] for row in added]
            if task.full_values:  # so that files have one type, also where all lists are empty
                values = pyarrow.array([task.full_values[number], *values])[1:]
            joined = joined.append_column(name, pyarrow.array(values))
    except pyarrow.ArrowException as e:
        raise InputError(f"{path} cannot hold these columns ({e}); write a .jsonl.") from None
    return joined


def _write_arrow(path, table):
    import pyarrow.parquet

    if path.suffix:
        with atomic_replace(path) as file:
            pyarrow.parquet.write_table(table, file)
        return
    make_folder(path)
    name = "data-00000-of-00001.arrow"
    with (
        atomic_replace(path / name) as file,
        pyarrow.OSFile(file, "wb") as out,
        pyarrow.ipc.new_stream(out, table.schema) as writer,
    ):
        writer.write_table(table)
    write_json(path / "dataset_info.json", {})  # the features are in the schema
    state = {"_data_files": [{"filename": name}], "_fingerprint": uuid.uuid4().hex}
    state |= {"_format_type": None, "_format_columns": None, "_format_kwargs": {}}
    write_json(path / STATE, state | {"_output_all_columns": False, "_split": None})
