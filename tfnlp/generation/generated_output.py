"""Output of generated texts, printed or to a file."""

import pathlib
import sys

from tfnlp.utils.files import json_text, write_text

HEADER = ("prompt", "text", "ended", "score")


def write_generated(path, prompts, outputs):
    """Write texts to a .tsv, or to a .jsonl with their token ids, one line each.

    Args:
        path: of the file.
        prompts: a list of strings.
        outputs: a list of `Generated` for each.
    """
    pairs = [
        (prompt, output)
        for prompt, texts in zip(prompts, outputs, strict=True)
        for output in texts
    ]
    if pathlib.Path(path).suffix == ".tsv":
        rows = [HEADER, *(_columns(prompt, output) for prompt, output in pairs)]
        lines = ["\t".join(row) for row in rows]
    else:
        lines = [
            json_text(
                {
                    "prompt": prompt,
                    "text": output.text,
                    "token_ids": list(output.token_ids),
                    "ended": output.ended,
                    "score": output.score,
                }
            )
            for prompt, output in pairs
        ]
    write_text(path, "".join(f"{line}\n" for line in lines))
    print(f"Wrote {path}.", file=sys.stderr)


def print_generated(prompts, outputs):
    """Print each prompt with its continuation, after the score in beam search."""
    for prompt, texts in zip(prompts, outputs, strict=True):
        for output in texts:
            score = "" if output.score is None else f"{output.score:.4f}\t"
            print(f"{score}{prompt}{output.text}")


def _columns(prompt, output):
    """Return the columns of a line, without tabs and line breaks in them."""
    score = "" if output.score is None else f"{output.score:.6f}"
    columns = (prompt, output.text, "yes" if output.ended else "no", score)
    return [" ".join(column.replace("\t", " ").splitlines()) for column in columns]
