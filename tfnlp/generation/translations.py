"""Translations of many texts: in a file that a killed run goes on with, and their scores."""

import json
import pathlib

from absl import logging

from tfnlp.errors import InputError
from tfnlp.files import json_text, make_folder, write_text
from tfnlp.text_scores import text_scores

COLUMNS = ("source", "translation")


def score_translations(translator, texts, path, tokenize="13a"):
    """Translates texts, writes them beside their references, and scores them.

    Args:
        translator: a `Translator`, or what is called as one.
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


def translate_file(translator, sources, rows, path, made_from, columns=COLUMNS):
    """Translates texts into a .tsv of source, translation and `score`, the best first.

    Each batch is written to PATH.part once it is done; a killed run goes on from there.

    Args:
        translator: a `Translator`.
        sources: a list of strings.
        rows: their ids, from `Translator.source_ids`.
        path: of the .tsv.
        made_from: a string that differs where translations would; a part of another is not kept.
        columns: the names of the first two.

    Raises:
        InputError: if a file cannot be written, and as the translator does.
    """
    part = pathlib.Path(f"{path}.part")
    done = _read_part(part, made_from)
    # Rows that are done count no less: what is drawn depends on the numbers of the others.
    left = [[] if number in done else ids for number, ids in enumerate(rows)]
    for number, texts in translator.each_translation(left):
        if number not in done:
            done[number] = [(one.text, one.score, one.ended) for one in texts]
            _append(part, (number, done[number]))
    lines = ["\t".join([*columns, "score"])]
    for number, source in enumerate(sources):
        for text, score, _ in done[number]:
            shown = "" if score is None else f"{score:.6f}"
            lines.append(f"{one_line(source)}\t{one_line(text)}\t{shown}")
    write_text(path, "".join(f"{line}\n" for line in lines))
    part.unlink(missing_ok=True)
    warn_of_cut((ended for texts in done.values() for _, _, ended in texts), translator)


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
    """Return the translations that a part holds whole, by number; another's is begun anew."""
    first = json_text({"made_from": made_from, "of_each": ["number", ["text", "score", "ended"]]})
    lines = part.read_text(encoding="utf-8").split("\n") if part.exists() else []
    if lines[:1] != [first]:
        make_folder(part.parent)
        write_text(part, f"{first}\n")
        return {}
    # What stands behind the last line end is of a write that was cut short.
    done = dict(json.loads(line) for line in lines[1:-1])
    write_text(part, "".join(f"{line}\n" for line in lines[:-1]))
    return done


def _append(part, row):
    try:
        with open(part, "a", encoding="utf-8") as file:
            file.write(f"{json_text(row)}\n")
    except OSError as e:
        raise InputError(
            f"{part} could not be written ({e.strerror or e}); free space, and give the same "
            "command to go on."
        ) from e
