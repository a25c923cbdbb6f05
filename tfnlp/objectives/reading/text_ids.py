"""Unlabelled texts of files as ids."""

import hashlib
import itertools

import numpy as np

from tfnlp.corpora.documents import read_documents
from tfnlp.text import Encodings
from tfnlp.text.reading.readers import read_every_text
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# The number of texts that are held in memory as strings.
PIECE = 20_000


def read_texts(paths, text_column="sentence", documents="lines"):
    """Yield the non-empty texts of files, stripped of white space.

    Args:
        paths: .tsv, .csv, .json, .jsonl or .parquet files, or plain text; each may end in .gz.
        text_column: the column of the text, if there are columns.
        documents: the separator of texts in plain text, as in `read_documents`.

    Raises:
        InputError: if a file is missing, broken or not UTF-8, or holds no text.
    """
    for path in paths:
        if documents == "lines":  # unlike the other separators, refuses an empty file
            texts = read_every_text(path, text_column)
        else:
            texts = read_documents([path], documents, text_column)
        text = None
        for text in filter(None, map(str.strip, texts)):
            yield text
        if text is None:
            raise InputError(f"{path} holds no text, only empty lines; give a file of texts.")


def encode_texts(texts, tokenizer, max_length):
    """Encode an iterable of texts as ids, holding only some of them in memory at a time.

    The rest of a text of more than `max_length` tokens becomes another text.

    Returns:
        `Encodings`, and the SHA-256 of the texts.
    """
    texts, digest, parts = iter(texts), hashlib.sha256(), []
    with progress_bar(desc="tokenizing", unit="text", delay=5) as bar:
        while batch := list(itertools.islice(texts, PIECE)):
            parts.append(tokenizer.encode_text_windows(batch, max_length, literal=True))
            for text in batch:
                digest.update(f"{text}\n".encode(errors="surrogatepass"))
            bar.update(len(batch))
    if not parts:
        raise InputError("There is no text to train on; give at least one.")
    ends = np.cumsum([0, *(len(part.token_ids) for part in parts)])
    encodings = Encodings(
        np.concatenate([part.token_ids for part in parts]),
        np.concatenate([part.segment_ids for part in parts]),
        np.concatenate([[0], *(e + p.starts[1:] for e, p in zip(ends, parts, strict=False))]),
        np.concatenate([part.truncated for part in parts]),
    )
    return encodings, digest.hexdigest()
