"""Augmentation of a file of examples, resumable in small steps."""

import dataclasses
import hashlib
import os
import pathlib

from absl import logging

from tfnlp.text.lines import read_lines
from tfnlp.text.readers import format_of, read_columns, read_examples, read_header
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json
from tfnlp.utils.progress import progress_bar

PIECE = 64  # examples between two saved states
COUNTS = ("originals", "copies", "duplicates", "refused")


@dataclasses.dataclass(frozen=True)
class TextColumns:
    """Columns of a file of examples: a text, and a second text and a label or None."""

    text: str = "sentence"
    pair: str | None = None
    label: str | None = None

    @property
    def texts(self):
        """Columns to augment."""
        return [column for column in (self.text, self.pair) if column]

    def key(self, row):
        """Return the texts of a row, by which examples are told apart."""
        return tuple(row[column] for column in self.texts)


def augment_file(
    augment,
    source,
    folder,
    columns=None,
    judge=None,
    keep_labels=True,
    originals=True,
    settings=None,
):
    """Write augmented.tsv, with the columns of a file and copies after each example.

    Duplicates are dropped: a copy of a text that is there already is left out. A killed call
    resumes and writes the same file.

    Args:
        augment: a function from a list of texts, and the number of the first, to a list of copies
            for each, such as a `WordReplacer`.
        source: the file, .tsv, .csv, .json, .jsonl, .parquet or .txt, or with .gz.
        folder: to write into.
        columns: `TextColumns` of the file; a "sentence" alone where None.
        judge: a function from texts, and second texts or None, to the teacher's labels; where None
            copies keep their example's label.
        keep_labels: whether copies with another label from the judge are left out; else they get
            the judge's label.
        originals: whether the examples themselves are written too.
        settings: a dict of what determines the result, compared on resumption.

    Returns:
        A dict of `COUNTS`.

    Raises:
        InputError: if the file cannot be read, or the folder holds a file of other settings or of
            another source.
    """
    columns, source, folder = columns or TextColumns(), pathlib.Path(source), pathlib.Path(folder)
    header, rows = _read(source, columns)
    fingerprint = hashlib.sha256(source.read_bytes()).hexdigest()
    path, part, state_path = (folder / x for x in ("augmented.tsv", "part.tsv", "state.json"))
    state = _read_state(folder, {"source": fingerprint, "settings": settings or {}})
    first = state["rows"]
    if first == len(rows) and path.exists():
        logging.info("%s is complete.", path)
        return {name: state[name] for name in COUNTS}
    folder.mkdir(parents=True, exist_ok=True)
    bar = progress_bar(total=len(rows), initial=first, unit="text")
    with open(part, "ab+") as file, bar:
        file.truncate(state["bytes"])
        # With originals=False the examples are not in the file, but copies must not equal them.
        seen = _keys_in(file, header, columns) | {columns.key(row) for row in rows[:first]}
        if not state["bytes"]:
            file.write(_line(header))
        for start in range(first, len(rows), PIECE):
            piece = rows[start : start + PIECE]
            examples = _augmented(augment, piece, start, columns.texts)
            if judge is not None:
                _judge(judge, examples, columns, keep_labels)
            for row, kind in examples:
                key = columns.key(row)
                if kind == "copies" and key in seen:
                    kind = "duplicates"
                if kind in ("originals", "copies"):
                    seen.add(key)
                if kind == "originals" and not originals:
                    continue
                state[kind] += 1
                if kind in ("originals", "copies"):
                    file.write(_line(row[column] for column in header))
            file.flush()
            os.fsync(file.fileno())
            state |= {"rows": start + len(piece), "bytes": file.tell()}
            write_json(state_path, state)
            bar.update(len(piece))
    os.replace(part, path)
    counts = {name: state[name] for name in COUNTS}
    logging.info(
        "Wrote %s: %d examples and %d copies; left out %d duplicates and %d that the teacher "
        "labels otherwise.",
        path,
        *counts.values(),
    )
    return counts


def labels_in_file(labels, source, text_column="sentence", label_column="label"):
    """Return the teacher's labels by their names in a file of examples.

    Labels without names (LABEL_0, LABEL_1, ...) map to the file's labels, sorted as in training.

    Args:
        labels: the teacher's, in order of their ids.
        source: the file.
        text_column, label_column: of the file.

    Returns:
        A list of labels in order of their ids.

    Raises:
        InputError: if the file cannot be read, or has labels that the teacher does not know.
    """
    names = read_examples(source, text_column, label_column=label_column).label_names
    if set(names) <= set(labels):
        return list(labels)
    unnamed = list(labels) == [f"LABEL_{i}" for i in range(len(labels))]
    if not unnamed or len(names) != len(labels):
        raise InputError(
            f"{source} has in {label_column} {', '.join(names)}, but the teacher's labels are "
            f"{', '.join(labels)}; give a teacher that was fine-tuned for these labels, or write "
            "their names into the id2label of its config.json."
        )
    return names


def _read(source, columns):
    """Read the columns of a file and its rows, dicts of texts without tabs and line breaks."""
    suffix = format_of(source)
    if suffix == ".txt":
        return [columns.text], [{columns.text: _clean(text)} for _, text in read_lines(source)]
    required = [*columns.texts, columns.label] if columns.label else columns.texts
    # JSON objects may hold more than texts, so only the named columns are read.
    header = required if suffix in (".json", ".jsonl") else read_header(source)
    # `read_columns` names a missing column.
    header = header + [column for column in required if column not in header]
    rows = [row for _, row in read_columns(source, header)]
    return header, [{name: _clean(str(x)) for name, x in row.items()} for row in rows]


def _clean(text):
    return " ".join(text.split()) if any(space in text for space in "\t\n\r") else text


def _line(values):
    return ("\t".join(values) + "\n").encode("utf-8", "replace")


def _read_state(folder, made_from):
    """Return the stored state of a folder's file, or a new one.

    Raises:
        InputError: if the file is of another source or of other settings.
    """
    if not (folder / "state.json").exists():
        if (folder / "augmented.tsv").exists():
            raise InputError(f"{folder / 'augmented.tsv'} exists; give another folder.")
        return {"made_from": made_from, "rows": 0, "bytes": 0} | dict.fromkeys(COUNTS, 0)
    state = read_json(folder / "state.json")
    stored = {"input file": state["made_from"]["source"], **state["made_from"]["settings"]}
    asked = {"input file": made_from["source"], **made_from["settings"]}
    for name in sorted(stored.keys() | asked, key=lambda name: (name == "input file", name)):
        if stored.get(name) != asked.get(name):
            raise InputError(
                f"{folder} holds texts that were made from another `{name}`; give another folder, "
                "or delete it."
            )
    return state


def _keys_in(file, header, columns):
    """Return the keys of the rows that are in a file already, a set."""
    file.seek(0)
    lines = (line.decode("utf-8").rstrip("\n").split("\t") for line in file.readlines()[1:])
    return {columns.key(dict(zip(header, line, strict=True))) for line in lines}


def _augmented(augment, rows, start, texts):
    """Return a list of [row, kind] for the examples of a piece and their copies."""
    # Second texts are numbered on their own, so that they have other draws.
    flat = [row[column] for row in rows for column in texts]
    copies = augment(flat, start * len(texts))
    examples = []
    for i, row in enumerate(rows):
        examples.append([row, "originals"])
        row_copies = copies[i * len(texts) : (i + 1) * len(texts)]
        for changed in zip(*row_copies, strict=True):
            clean = map(_clean, changed)
            examples.append([row | dict(zip(texts, clean, strict=True)), "copies"])
    return examples


def _judge(judge, examples, columns, keep_labels):
    """Give copies the judge's label, or mark those with another label as refused."""
    copies = [example for example in examples if example[1] == "copies"]
    if not copies:
        return
    texts, *pairs = ([row[column] for row, _ in copies] for column in columns.texts)
    labels = judge(texts, pairs[0] if pairs else None)
    for example, label in zip(copies, labels, strict=True):
        if not keep_labels:
            example[0] = example[0] | {columns.label: label}
        elif example[0][columns.label].strip() != label:
            example[1] = "refused"
