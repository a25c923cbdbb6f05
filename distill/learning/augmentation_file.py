"""Augmentation of a file of examples, resumable in small steps."""

import contextlib
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
        source: the file, .tsv, .csv, .json, .jsonl or .txt, or with .gz.
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
    columns, source = columns or TextColumns(), pathlib.Path(source)
    header, rows = _read(source, columns)
    made_from = {
        "source": hashlib.sha256(source.read_bytes()).hexdigest(),
        "settings": settings or {},
    }
    output = _AugmentedFile(folder, header, columns.texts, originals, made_from)
    if output.is_complete(rows):
        logging.info("%s is complete.", output.path)
        return output.counts()
    first = output.state["rows"]
    with output.open(rows), progress_bar(total=len(rows), initial=first, unit="text") as bar:
        for start in range(first, len(rows), PIECE):
            piece = rows[start : start + PIECE]
            examples = _augmented(augment, piece, start, columns.texts)
            if judge is not None:
                _judge(judge, examples, columns, keep_labels)
            output.write(examples)
            output.save_state(start + len(piece))
            bar.update(len(piece))
    logging.info(
        "Wrote %s: %d examples and %d copies; left out %d duplicates and %d that the teacher "
        "labels otherwise.",
        output.path,
        *output.counts().values(),
    )
    return output.counts()


class _AugmentedFile:
    """File in the making: its lines, its counts, and the state to resume from.

    Args:
        folder: to write into.
        header: names of the columns.
        texts: names of the columns whose texts tell examples apart.
        originals: whether examples are written beside their copies.
        made_from: a dict of what determines the result.

    Raises:
        InputError: if the folder holds a file of something else.
    """

    def __init__(self, folder, header, texts, originals, made_from):
        self.folder, self.header, self.texts = pathlib.Path(folder), header, texts
        self.originals = originals
        self.path, self.part = self.folder / "augmented.tsv", self.folder / "part.tsv"
        self.state_path = self.folder / "state.json"
        self.state = {"made_from": made_from, "rows": 0, "bytes": 0} | dict.fromkeys(COUNTS, 0)
        if self.state_path.exists():
            self.state = _same(self.folder, read_json(self.state_path), made_from)
        elif self.path.exists():
            raise InputError(f"{self.path} exists; give another folder, or move it away.")

    def is_complete(self, rows):
        return self.state["rows"] == len(rows) and self.path.exists()

    def counts(self):
        return {name: self.state[name] for name in COUNTS}

    @contextlib.contextmanager
    def open(self, rows):
        """Open the unfinished file after its last saved state; rename it at the end.

        Raises:
            InputError: if it cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with open(self.part, "ab+") as file:
                self.file = file
                file.truncate(self.state["bytes"])
                self.seen = _texts_in(file, self.header, self.texts)
                # With originals=False the examples are not in the file, but copies must not equal
                # them.
                self.seen.update(self._key(row) for row in rows[: self.state["rows"]])
                if not self.state["bytes"]:
                    file.write(_line(self.header))
                yield
            os.replace(self.part, self.path)
        except OSError as e:
            raise InputError(
                f"{self.part} could not be written ({e.strerror or e}); free space."
            ) from e

    def write(self, examples):
        """Write examples that are not there already; each is a list of row and kind."""
        for row, kind in examples:
            key = self._key(row)
            if kind == "originals" and not self.originals:
                self.seen.add(key)
                continue
            kind = "duplicates" if kind == "copies" and key in self.seen else kind
            self.state[kind] += 1
            if kind in ("originals", "copies"):
                self.seen.add(key)
                self.file.write(_line(row[column] for column in self.header))

    def save_state(self, rows):
        """Save the state after so many rows of the source."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.state |= {"rows": rows, "bytes": self.file.tell()}
        write_json(self.state_path, self.state)

    def _key(self, row):
        return tuple(row[column] for column in self.texts)


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
    if list(labels) != [f"LABEL_{i}" for i in range(len(labels))]:
        unknown = next(name for name in names if name not in labels)
        raise InputError(
            f"{source} has the {label_column} {unknown!r}, but the teacher's labels are "
            f"{', '.join(labels)}; give a teacher that was fine-tuned for these labels."
        )
    if len(names) != len(labels):
        raise InputError(
            f"{source} has {len(names)} labels and the teacher {len(labels)}, which have no "
            "names; write their names into the id2label of its config.json."
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


def _same(folder, state, made_from):
    """Return a stored state; raise an InputError if it is of another file or settings."""
    if state["made_from"] == made_from:
        return state
    stored, settings = state["made_from"]["settings"], made_from["settings"]
    names = sorted(stored.keys() | settings)
    changed = next((name for name in names if stored.get(name) != settings.get(name)), None)
    difference = "another input file" if changed is None else f"another `{changed}`"
    raise InputError(
        f"{folder} holds texts that were made from {difference}; give another folder, or delete "
        "it."
    )


def _texts_in(file, header, texts):
    """Return the texts that are in a file already, a set of tuples."""
    file.seek(0)
    places = [header.index(column) for column in texts]
    lines = (line.decode("utf-8").rstrip("\n").split("\t") for line in file.readlines()[1:])
    return {tuple(line[place] for place in places) for line in lines}


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
