"""Augmentation of a file of examples, in parts that are made alone and then joined."""

import dataclasses
import functools
import json
import pathlib

from absl import logging

from tfnlp.checkpoints import unnamed_labels
from tfnlp.text.reading.lines import read_lines
from tfnlp.text.reading.readers import (
    OBJECTS,
    format_of,
    read_columns,
    read_examples,
    read_header,
)
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, file_hash, read_json, write_json, write_text
from tfnlp.utils.shard_work import run_shards

PIECE = 256  # examples of a part
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
    load,
    source,
    folder,
    columns=None,
    keep_labels=True,
    originals=True,
    settings=None,
    map_shards=None,
):
    """Write augmented.tsv, with the columns of a file and copies after each example.

    Duplicates are dropped: a copy of a text that is there already is left out. A killed call
    resumes and writes the same file. Examples and copies of a part depend on its examples alone;
    duplicates are found as parts are joined, in a process that holds the file in memory.

    Args:
        load: a function without arguments that is called in each process that works, such as an
            `Augmenter`. It returns a function from a list of texts, and the number of the first,
            to a list of copies for each, and one from texts, and second texts or None, to the
            teacher's labels; None in its place where copies keep their example's label.
        source: the file, .tsv, .csv, .json, .jsonl, .parquet or .txt, or with .gz.
        folder: to write into.
        columns: `TextColumns` of the file; a "sentence" alone where None.
        keep_labels: whether copies with another label from the teacher are left out; else they get
            the teacher's label.
        originals: whether the examples themselves are written too.
        settings: a dict of what determines the result, compared on resumption.
        map_shards: of `tfnlp.utils.shard_work`, such as `in_beam(runner)`, whose workers must
            all see the folder; in this process where None.

    Returns:
        A dict of `COUNTS`.

    Raises:
        InputError: if the file cannot be read, or the folder holds a file of other settings or of
            another source.
    """
    columns, source = columns or TextColumns(), pathlib.Path(source)
    folder = pathlib.Path(folder).absolute()
    path, state_path = folder / "augmented.tsv", folder / "state.json"
    header, rows = _read(source, columns)
    fingerprint = file_hash(source)
    state = _read_state(folder, {"source": fingerprint, "settings": settings or {}})
    if path.exists():
        logging.info("%s is complete.", path)
        return {name: state[name] for name in COUNTS}
    write_json(state_path, state)
    numbers = range(0, len(rows), PIECE)
    parts = [folder / f"part-{number:09d}.jsonl" for number in numbers]
    items = [
        (part, number, rows[number : number + PIECE])
        for part, number in zip(parts, numbers, strict=True)
        if not part.exists()
    ]
    maker = functools.partial(_part_maker, load, columns, keep_labels)
    try:
        run_shards(maker, items, "augmenting", map_shards, done=len(parts) - len(items))
    finally:
        if not any(map(pathlib.Path.exists, parts)):
            state_path.unlink()  # so that other settings are free to follow a failure
    counts = _join(parts, path, header, columns, originals)
    write_json(state_path, state | counts)
    for part in parts:
        part.unlink()
    logging.info(
        "Wrote %s: %d examples and %d copies; left out %d duplicates and %d that the teacher "
        "labels otherwise.",
        path,
        *counts.values(),
    )
    return counts


def _part_maker(load, columns, keep_labels):
    """Return a function that writes a part: a line of [row, kind] for each example and copy."""
    augment, judge = load()

    def make(item):
        path, number, rows = item
        examples = _augmented(augment, rows, number, columns.texts)
        if judge is not None:
            _judge(judge, examples, columns, keep_labels)
        write_text(path, "".join(f"{json.dumps(example)}\n" for example in examples))

    return make


def _join(parts, path, header, columns, originals):
    """Write the examples and copies of parts without duplicates, and return their counts."""
    counts, seen = dict.fromkeys(COUNTS, 0), set()
    with atomic_replace(path) as temporary, open(temporary, "wb") as file:
        file.write(_line(header))
        for line in (line for part in parts for line in part.read_text().splitlines()):
            row, kind = json.loads(line)
            key = columns.key(row)
            if kind == "copies" and key in seen:
                kind = "duplicates"
            if kind in ("originals", "copies"):
                # With originals=False they are not in the file, but copies must not equal them.
                seen.add(key)
            if kind == "originals" and not originals:
                continue
            counts[kind] += 1
            if kind in ("originals", "copies"):
                file.write(_line(row[column] for column in header))
    return counts


def labels_in_file(labels, source, text_column="sentence", label_column="label"):
    """Return the teacher's labels by their names in a file of examples.

    Labels without names (LABEL_0, LABEL_1, ...) map to the file's labels, sorted as in training.

    Args:
        labels: the teacher's, in order of their ids; None as `transformers` writes two without
            names.
        source: the file.
        text_column, label_column: of the file.

    Returns:
        A list of labels in order of their ids.

    Raises:
        InputError: if the file cannot be read, or has labels that the teacher does not know.
    """
    labels = labels or unnamed_labels(2)
    names = read_examples(source, text_column, label_column=label_column).label_names
    if set(names) <= set(labels):
        return list(labels)
    unnamed = list(labels) == unnamed_labels(len(labels))
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
    # Rows of objects may hold more than texts, so only the named columns are read.
    header = required if suffix in OBJECTS else read_header(source)
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
        return {"made_from": made_from}
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
