"""Augmentation of a file of examples, resumable in small steps."""

import hashlib
import os
import pathlib

from absl import logging

from tfnlp.text.columns import format_of, read_columns, read_header
from tfnlp.text.lines import read_lines
from tfnlp.text.readers import read_examples
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json
from tfnlp.utils.progress import progress_bar

PIECE = 64  # examples between two saved states
COUNTS = ("originals", "copies", "duplicates", "refused")


def augment_file(
    augment,
    source,
    folder,
    text_column="sentence",
    pair_column=None,
    label_column=None,
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
        text_column: the column of the text.
        pair_column: the column of the second text, which is augmented too; or None.
        label_column: the column of the label, or None.
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
    folder = pathlib.Path(folder)
    final, part, state_path = (folder / n for n in ("augmented.tsv", "part.tsv", "state.json"))
    header, rows = _read(pathlib.Path(source), text_column, pair_column, label_column)
    made_from = {
        "source": hashlib.sha256(pathlib.Path(source).read_bytes()).hexdigest(),
        "settings": settings or {},
    }
    state = {"made_from": made_from, "rows": 0, "bytes": 0} | dict.fromkeys(COUNTS, 0)
    if state_path.exists():
        state = _same(folder, read_json(state_path), made_from)
        if state["rows"] == len(rows) and final.exists():
            logging.info("%s is complete.", final)
            return {name: state[name] for name in COUNTS}
    elif final.exists():
        raise InputError(f"{final} is there already; give another folder, or move it away.")
    texts = [column for column in (text_column, pair_column) if column]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with open(part, "ab+") as file:
            file.truncate(state["bytes"])
            seen = _written(file, header, texts)
            # With originals=False the examples are not in the file, but copies must not equal
            # them.
            seen.update(tuple(row[column] for column in texts) for row in rows[: state["rows"]])
            if not state["bytes"]:
                file.write(_line(header))
            with progress_bar(total=len(rows), initial=state["rows"], unit="text") as bar:
                for start in range(state["rows"], len(rows), PIECE):
                    piece = rows[start : start + PIECE]
                    examples = _augmented(augment, piece, start, texts)
                    if judge is not None:
                        _judge(judge, examples, texts, label_column, keep_labels)
                    for row, kind in examples:
                        key = tuple(row[column] for column in texts)
                        if kind == "originals" and not originals:
                            seen.add(key)
                            continue
                        kind = "duplicates" if kind == "copies" and key in seen else kind
                        state[kind] += 1
                        if kind in ("originals", "copies"):
                            seen.add(key)
                            file.write(_line(row[column] for column in header))
                    file.flush()
                    os.fsync(file.fileno())
                    state |= {"rows": start + len(piece), "bytes": file.tell()}
                    write_json(state_path, state)
                    bar.update(len(piece))
        os.replace(part, final)
    except OSError as e:
        raise InputError(f"{part} could not be written ({e.strerror or e}); free space.") from e
    counts = {name: state[name] for name in COUNTS}
    logging.info(
        "Wrote %s: %d examples and %d copies; left out %d duplicates and %d that the teacher "
        "calls otherwise.",
        final,
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
    if list(labels) != [f"LABEL_{i}" for i in range(len(labels))]:
        other = next(name for name in names if name not in labels)
        raise InputError(
            f"{source} has the {label_column} {other!r}, but the teacher's labels are "
            f"{', '.join(labels)}; give a teacher that was fine-tuned for these labels."
        )
    if len(names) != len(labels):
        raise InputError(
            f"{source} has {len(names)} labels and the teacher {len(labels)}, which have no "
            "names; write their names into the id2label of its config.json."
        )
    return names


def _read(source, text_column, pair_column, label_column):
    """Read the columns of a file and its rows, dicts of texts without tabs and line breaks."""
    suffix = format_of(source)
    asked = [column for column in (text_column, pair_column, label_column) if column]
    if suffix == ".txt":
        return [text_column], [{text_column: _clean(text)} for _, text in read_lines(source)]
    # JSON objects may hold more than texts, so only the named columns are read.
    header = asked if suffix in (".json", ".jsonl") else read_header(source)
    header = header + [column for column in asked if column not in header]  # refused by name
    found = read_columns(source, header)
    return header, [{k: _clean(str(v)) for k, v in row.items()} for _, row in found]


def _clean(text):
    return " ".join(text.split()) if any(c in text for c in "\t\n\r") else text


def _line(values):
    return ("\t".join(values) + "\n").encode("utf-8", "replace")


def _same(folder, state, made_from):
    if state["made_from"] != made_from:
        stored = state["made_from"]
        names = sorted(stored["settings"].keys() | made_from["settings"])
        other = next(
            (n for n in names if stored["settings"].get(n) != made_from["settings"].get(n)), None
        )
        what = "another input file" if other is None else f"another `{other}`"
        raise InputError(
            f"{folder} holds texts that were made from {what}; give another folder, or delete it."
        )
    return state


def _written(file, header, texts):
    """Return the texts that are in a file already."""
    file.seek(0)
    places = [header.index(column) for column in texts]
    lines = (line.decode("utf-8").rstrip("\n").split("\t") for line in file.readlines()[1:])
    return {tuple(line[place] for place in places) for line in lines}


def _augmented(augment, rows, start, texts):
    """Return a list of [row, kind] for the examples of a piece and their copies."""
    # Second texts are numbered on their own, so that they have other draws.
    given = [row[column] for row in rows for column in texts]
    copies = augment(given, start * len(texts))
    examples = []
    for i, row in enumerate(rows):
        examples.append([row, "originals"])
        own = copies[i * len(texts) : (i + 1) * len(texts)]
        for changed in zip(*own, strict=True):
            clean = map(_clean, changed)
            examples.append([row | dict(zip(texts, clean, strict=True)), "copies"])
    return examples


def _judge(judge, examples, texts, label_column, keep_labels):
    """Give copies the judge's label, or mark those with another label as refused."""
    copies = [example for example in examples if example[1] == "copies"]
    columns = [[row[column] for row, _ in copies] for column in texts]
    if not copies:
        return
    labels = judge(columns[0], columns[1] if len(columns) > 1 else None)
    for example, label in zip(copies, labels, strict=True):
        if not keep_labels:
            example[0] = example[0] | {label_column: label}
        elif example[0][label_column].strip() != label:
            example[1] = "refused"
