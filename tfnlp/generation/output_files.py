"""Files of generated texts and translations, with resume and scores."""

import json
import pathlib
import sys

from absl import logging

from tfnlp.tasks.reference_scores import text_scores
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import json_text, make_folder, write_text


def write_generated(path, prompts, outputs):
    """Write texts to a .tsv, or to a .jsonl with their token ids, one line each.

    Args:
        path: of the file.
        prompts: a list of strings.
        outputs: a list of `Generated` for each.
    """
    pairs = [(p, x) for p, texts in zip(prompts, outputs, strict=True) for x in texts]
    if pathlib.Path(path).suffix == ".tsv":
        rows = [(p, x.text, "yes" if x.ended else "no", _shown(x.score)) for p, x in pairs]
        _write_table(path, [("prompt", "text", "ended", "score"), *rows])
    else:
        lines = (json_text({"prompt": prompt, **vars(output)}) for prompt, output in pairs)
        write_text(path, "".join(f"{line}\n" for line in lines))
    print(f"Wrote {path}.", file=sys.stderr)


def print_generated(prompts, outputs):
    """Print each prompt with its continuation, after the score in beam search."""
    for prompt, texts in zip(prompts, outputs, strict=True):
        for output in texts:
            score = "" if output.score is None else f"{output.score:.4f}\t"
            print(f"{score}{prompt}{output.text}")


def score_translations(translator, texts, path, tokenize="13a"):
    """Translate texts, write them beside their references, and return scores.

    Args:
        translator: a `Translator`, or a callable with its interface.
        texts: `ParallelTexts`.
        path: of the .tsv to write: source, reference and translation.
        tokenize: as in `text_scores`.

    Returns:
        `bleu`, `chrf` and their signatures, by sacrebleu.
    """
    translations = [texts_of_source[0].text for texts_of_source in translator(texts.sources)]
    rows = zip(texts.sources, texts.targets, translations, strict=True)
    _write_table(path, [("source", "reference", "translation"), *rows])
    scores = text_scores(texts.targets, translations, tokenize)
    return {name: value for name, value in scores.items() if name.startswith(("bleu", "chrf"))}


def translate_file(translator, sources, rows, path, made_from, columns=("source", "translation")):
    """Translate texts into a .tsv of source, translation and `score`, the best first.

    Each text is appended to PATH.part once it is done; a killed run resumes from there.

    Args:
        translator: a `Translator`.
        sources: a list of strings.
        rows: their ids, from `Translator.source_ids`.
        path: of the .tsv.
        made_from: a string that identifies the inputs; a part file with another one is discarded.
        columns: the names of the first two.

    Raises:
        InputError: if a file cannot be written, and as the translator does.
    """
    part = pathlib.Path(f"{path}.part")
    finished = _read_part(part, made_from)
    # Finished rows stay as empty ones, since samples depend on the row numbers.
    left = [[] if number in finished else ids for number, ids in enumerate(rows)]
    for number, texts in translator.each_translation(left):
        if number not in finished:
            finished[number] = [(text.text, text.score, text.ended) for text in texts]
            _append(part, (number, finished[number]))
    lines = [(*columns, "score")]
    for number, source in enumerate(sources):
        lines += [(source, text, _shown(score)) for text, score, _ in finished[number]]
    _write_table(path, lines)
    part.unlink(missing_ok=True)
    warn_of_cut((ended for texts in finished.values() for _, _, ended in texts), translator)


def warn_of_cut(ended, translator):
    """Warn of the number of texts without an end token, given a flag for each text."""
    if truncated := sum(not flag for flag in ended):
        logging.warning(
            "%d of the translations were cut at %d tokens.", truncated, translator.settings.steps
        )


def one_line(text):
    """Return a text without tabs and line breaks, for a column."""
    return " ".join(text.replace("\t", " ").splitlines())


def _write_table(path, rows):
    """Write rows of strings to a .tsv."""
    write_text(path, "".join("\t".join(map(one_line, row)) + "\n" for row in rows))


def _shown(score):
    return "" if score is None else f"{score:.6f}"


def _read_part(part, made_from):
    """Return the complete translations of a part file by number; reset that of another input."""
    first = json_text({"made_from": made_from, "of_each": ["number", ["text", "score", "ended"]]})
    lines = part.read_text(encoding="utf-8").split("\n") if part.exists() else []
    if lines[:1] != [first]:
        make_folder(part.parent)
        write_text(part, f"{first}\n")
        return {}
    # Text after the last line end comes from an interrupted write.
    finished = dict(json.loads(line) for line in lines[1:-1])
    write_text(part, "".join(f"{line}\n" for line in lines[:-1]))
    return finished


def _append(part, row):
    try:
        with open(part, "a", encoding="utf-8") as file:
            file.write(f"{json_text(row)}\n")
    except OSError as e:
        raise InputError(
            f"{part} could not be written ({e.strerror or e}); free space, and run the same "
            "command to resume."
        ) from e
