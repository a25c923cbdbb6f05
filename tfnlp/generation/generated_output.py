"""Output of generated texts, printed or to a file."""

import pathlib
import sys

from tfnlp.utils.files import json_text, write_text

HEADER = ("prompt", "text", "ended", "score")


def write_generated(path, prompts, found):
    """Write texts to a .tsv, or to a .jsonl with their token ids, one line each.

    Args:
        path: of the file.
        prompts: a list of strings.
        found: a list of `Generated` for each.
    """
    pairs = [(prompt, one) for prompt, texts in zip(prompts, found, strict=True) for one in texts]
    if pathlib.Path(path).suffix == ".tsv":
        rows = [HEADER, *(_columns(prompt, one) for prompt, one in pairs)]
        lines = ["\t".join(row) for row in rows]
    else:
        lines = [
            json_text(
                {
                    "prompt": prompt,
                    "text": one.text,
                    "token_ids": list(one.token_ids),
                    "ended": one.ended,
                    "score": one.score,
                }
            )
            for prompt, one in pairs
        ]
    write_text(path, "".join(f"{line}\n" for line in lines))
    print(f"Wrote {path}.", file=sys.stderr)


def print_generated(prompts, found):
    """Print each prompt with its continuation, after the score in beam search."""
    for prompt, texts in zip(prompts, found, strict=True):
        for one in texts:
            score = "" if one.score is None else f"{one.score:.4f}\t"
            print(f"{score}{prompt}{one.text}")


def _columns(prompt, one):
    """Return the columns of a line, without tabs and line breaks in them."""
    score = "" if one.score is None else f"{one.score:.6f}"
    columns = (prompt, one.text, "yes" if one.ended else "no", score)
    return [" ".join(column.replace("\t", " ").splitlines()) for column in columns]
