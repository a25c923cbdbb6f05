"""Unlabelled texts from files, as ids."""

import hashlib
import itertools

import numpy as np

from tfnlp.corpora.documents import read_documents
from tfnlp.errors import InputError
from tfnlp.progress import progress_bar
from tfnlp.text import Encodings
from tfnlp.text.readers import read_every_text

# Texts that are held as such at a time.
PIECE = 20_000


def read_texts(paths, text_column="sentence", documents="lines"):
    """Yields the texts of files, without white space around them, but for empty ones.

    Args:
        paths: of .tsv, .csv, .json or .jsonl files, or of plain text; each may end in .gz.
        text_column: the column of the text where there are columns.
        documents: what parts the texts of plain text, as `read_documents` takes it.

    Raises:
        InputError: for a file that is missing, broken or not UTF-8, or that holds no text.
    """
    for path in paths:
        found = False
        if documents == "lines":
            texts = read_every_text(path, text_column)
        else:
            texts = read_documents([path], documents, text_column)
        for text in texts:
            if text := text.strip():
                found = True
                yield text
        if not found:
            raise InputError(f"{path} holds no text, only empty lines; give a file of texts.")


def encode_texts(texts, tokenizer, max_length):
    """Texts as ids, without holding more than some of the texts.

    Args:
        texts: an iterable of strings, such as `read_texts` gives.
        tokenizer: see `tfnlp.text`.
        max_length: the most tokens of a text; the rest of a longer one is a further text.

    Returns:
        `Encodings`, and the SHA-256 of the texts.
    """
    texts, digest, parts = iter(texts), hashlib.sha256(), []
    with progress_bar(desc="tokenizing", unit="text", delay=5) as bar:
        while piece := list(itertools.islice(texts, PIECE)):
            parts.append(tokenizer.encode_text_windows(piece, max_length, literal=True))
            for text in piece:
                digest.update(f"{text}\n".encode(errors="surrogatepass"))
            bar.update(len(piece))
    if not parts:
        raise InputError("There is no text to learn from; give one at least.")
    ends = np.cumsum([0, *(len(part.token_ids) for part in parts)])
    encodings = Encodings(
        np.concatenate([part.token_ids for part in parts]),
        np.concatenate([part.segment_ids for part in parts]),
        np.concatenate([[0], *(e + p.starts[1:] for e, p in zip(ends, parts, strict=False))]),
        np.concatenate([part.cut for part in parts]),
    )
    return encodings, digest.hexdigest()
