"""Translations of many texts: in a file that a killed run goes on with, and their scores."""

import json
import pathlib

from absl import logging

from tfnlp.errors import InputError
from tfnlp.files import json_text, make_folder, write_text
from tfnlp.progress import progress_bar
from tfnlp.text_scores import text_scores

# Texts that are translated before what there is of them is written.
PIECE = 512


def score_translations(translator, texts, path, tokenize="13a"):
    """Translates texts, writes them beside their references, and scores them.

    Args:
        translator: a `Translator`.
        texts: `ParallelTexts`.
        path: of the .tsv to write: source, reference and translation.
        tokenize: as `text_scores` takes it.

    Returns:
        `bleu`, `chrf` and their signatures, by sacrebleu.
    """
    found = [one[0].text for one in translator(texts.sources)]
    rows = [("source", "reference", "translation")]
    rows += zip(texts.sources, texts.targets, found, strict=True)
    write_text(path, "".join("\t".join(map(one_line, row)) + "\n" for row in rows))
    scores = text_scores(texts.targets, found, tokenize)
    return {name: value for name, value in scores.items() if name.startswith(("bleu", "chrf"))}


def translate_file(
    translator, sources, path, made_from, columns=("source", "translation"), piece=PIECE
):
    """Translates texts into a .tsv of source, translation and `score`, the best first.

    What there is of it is kept in PATH.part, from which a killed run goes on.

    Args:
        translator: a `Translator`, or what is called as one.
        sources: a list of strings.
        path: of the .tsv.
        made_from: a string that differs where translations would; a part of another is not kept.
        columns: the names of the first two.
        piece: how many sources are translated before they are written.

    Raises:
        InputError: if a file cannot be written, and as the translator does.
    """
    part = pathlib.Path(f"{path}.part")
    done = _read_part(part, made_from)
    with progress_bar(total=len(sources), initial=len(done), unit="text", disable=None) as bar:
        for start in range(len(done), len(sources), piece):
            found = translator(sources[start : start + piece])
            rows = [[(one.text, one.score, one.ended) for one in texts] for texts in found]
            _append(part, rows)
            done += rows
            bar.update(len(rows))
    lines = ["\t".join([*columns, "score"])]
    for source, texts in zip(sources, done, strict=True):
        for text, score, _ in texts:
            shown = "" if score is None else f"{score:.6f}"
            lines.append(f"{one_line(source)}\t{one_line(text)}\t{shown}")
    write_text(path, "".join(f"{line}\n" for line in lines))
    part.unlink(missing_ok=True)
    warn_of_cut((ended for texts in done for _, _, ended in texts), translator)


def warn_of_cut(ended, translator):
    """Says how many texts, of each of which it is given whether it was ended, were not."""
    if cut := sum(not one for one in ended):
        logging.warning(
            "%d of the translations were cut at %d tokens.", cut, translator.max_new_tokens
        )


def one_line(text):
    """A text without tabs and line breaks, for a column."""
    return " ".join(text.replace("\t", " ").splitlines())


def _read_part(part, made_from):
    """The translations that a part holds whole; where it is another's, it is begun anew."""
    first = json_text({"made_from": made_from, "of_each": ["text", "score", "ended"]})
    lines = part.read_text(encoding="utf-8").split("\n") if part.exists() else []
    if lines[:1] != [first]:
        make_folder(part.parent)
        write_text(part, f"{first}\n")
        return []
    # What stands behind the last line end is of a write that was cut short.
    rows = [json.loads(line) for line in lines[1:-1]]
    write_text(part, "".join(f"{line}\n" for line in lines[:-1]))
    return rows


def _append(part, rows):
    try:
        with open(part, "a", encoding="utf-8") as file:
            file.writelines(f"{json_text(row)}\n" for row in rows)
    except OSError as e:
        raise InputError(
            f"{part} could not be written ({e.strerror or e}); free space, and give the same "
            "command to go on."
        ) from e
