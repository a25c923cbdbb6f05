"""Unlabelled files as documents, and documents as ids with the borders of their sentences."""

import glob
import itertools
import pathlib
import re

import numpy as np
from absl import logging

from tfnlp.corpora.sentences import sentence_starts
from tfnlp.errors import InputError
from tfnlp.text.columns import read_columns
from tfnlp.text.lines import check_file, holds_nothing, read_lines
from tfnlp.text.readers import TABLES

# What parts the documents of plain text, and what parts the sentences of a document.
DOCUMENTS = ("blank_lines", "lines", "files")
SENTENCES = ("split", "lines")
# Characters that are tokenised at a time; of a longer document, some of its lines.
PIECE_CHARACTERS = 400_000
# The share of unknown tokens above which a tokenizer is taken for that of other texts.
UNKNOWN = 0.05
_LINE = re.compile(r"^[^\S\n]*\S", re.MULTILINE)


def find_files(patterns):
    """The files that paths and patterns such as `wiki/*.txt.gz` name, each once, as `Path`s.

    Raises:
        InputError: for a path where no file is, or a pattern that no file matches.
    """
    found = {}
    for pattern in map(str, patterns):
        paths = [pattern]
        if glob.has_magic(pattern) and not pathlib.Path(pattern).exists():
            paths = sorted(path for path in glob.glob(pattern) if pathlib.Path(path).is_file())
            if not paths:
                raise InputError(f"No file matches {pattern}; check the pattern.")
        for path in map(pathlib.Path, paths):
            check_file(path)
            found[path] = None
    return list(found)


def read_documents(paths, documents="blank_lines", text_column="sentence", on_read=None):
    """Yields the text of each document of some files, "" of an empty one.

    Of a file with columns (.tsv, .csv, .json, .jsonl, or those with .gz) each row is a document.

    Args:
        paths: of the files.
        documents: what parts the documents of plain text: "blank_lines", or each of its "lines"
            is one, or each of the "files".
        text_column: the column of the text where there are columns.
        on_read: called now and then with how many bytes of all files are read.

    Raises:
        InputError: as `read_lines` and `read_columns`; an empty file is an empty document, of
            which a warning says.
    """
    if documents not in DOCUMENTS:
        raise InputError(f"documents={documents!r} must be one of {', '.join(DOCUMENTS)}.")
    before = 0
    for path in map(pathlib.Path, paths):
        check_file(path)
        size = path.stat().st_size
        told = on_read and _after(before, on_read)
        if holds_nothing(path):
            logging.warning("%s is empty.", path)
            texts = iter([""])
        elif has_columns(path):
            texts = (row[text_column] for _, row in read_columns(path, [text_column], told))
        else:
            lines = (line for _, line in read_lines(path, told))
            texts = _plain_documents(lines, documents)
        for text in texts:
            yield text.strip()
        before += size
        if on_read:
            on_read(before)


def has_columns(path):
    """Return whether each row of a file is a document, by its name, a `Path`."""
    return path.name.lower().removesuffix(".gz").endswith(TABLES)


def _after(before, on_read):
    return lambda position: on_read(before + position)


def _plain_documents(lines, documents):
    """Yields the documents of a file's lines."""
    if documents == "lines":
        yield from lines
    elif documents == "files":
        yield "\n".join(lines)
    else:
        held = []
        for line in lines:
            if line.strip():
                held.append(line)
            elif held:
                yield "\n".join(held)
                held = []
        if held:
            yield "\n".join(held)


def encode_documents(texts, tokenizer, sentences="split"):
    """Yields the ids of each document, without special tokens, and the tokens of its sentences.

    A document is tokenised as running text, and the borders of its sentences are found in it: a
    tokenizer that reads the white space before a word (byte-level BPE) gives the same ids whatever
    the sentences. "[SEP]" in a document is text, whatever the tokenizer. A document above
    `PIECE_CHARACTERS` is cut at ends of lines, where it has any.

    Args:
        texts: an iterable of strings.
        tokenizer: see `tfnlp.text`.
        sentences: "split" by `tfnlp.corpora.sentences`, or each of the "lines" is one.

    Returns:
        Yields, for each text, (tokens,) int32 and (sentences,) int64; both are empty for a text
        without tokens, and no sentence is.
    """
    if sentences not in SENTENCES:
        raise InputError(f"sentences={sentences!r} must be one of {', '.join(SENTENCES)}.")
    starts = sentence_starts if sentences == "split" else _line_starts
    for batch in _batches(texts):
        pieces, of = [], []
        for number, text in enumerate(batch):
            for piece in _pieces(text):
                pieces.append(piece)
                of.append(number)
        ids, ends, lengths, sentence_ends = _encode_pieces(pieces, tokenizer, starts)
        # A document ends where its last piece does.
        last = np.flatnonzero(np.diff(of, append=len(batch)))
        ends, sentence_ends = ends[last], sentence_ends[last]
        for a, b, c, d in zip(
            np.append(0, ends), ends, np.append(0, sentence_ends), sentence_ends, strict=False
        ):
            of_document = lengths[c:d]
            yield ids[a:b], of_document[of_document > 0]


def _encode_pieces(pieces, tokenizer, starts):
    """All ids, where each piece ends in them, the sentences' tokens, where each ends in those."""
    encodings = tokenizer.encode(pieces, offsets=True, literal=True)
    ours = encodings.sources >= 0  # the others frame a text
    ids = encodings.token_ids[ours]
    ends = np.append(0, np.cumsum(ours))[encodings.starts[1:]]
    # Places of characters, counted through all pieces. White space is of the sentence behind it:
    # some tokens are a word and the space before. A token is where its last character is.
    bases = np.cumsum([0, *(len(piece) + 1 for piece in pieces)])
    counts = np.diff(ends, prepend=0)
    offsets = encodings.offsets[ours].astype("int64")
    places = np.maximum(offsets[:, 0], offsets[:, 1] - 1) + np.repeat(bases[:-1], counts)
    borders = [_borders(piece, starts(piece)) for piece in pieces]
    sentence_ends = np.cumsum([len(own) for own in borders])
    flat = np.concatenate(borders) + np.repeat(bases[:-1], np.diff(sentence_ends, prepend=0))
    sentence = np.searchsorted(flat, np.maximum.accumulate(places), side="right") - 1
    return ids, ends, np.bincount(sentence, minlength=len(flat)), sentence_ends


def _borders(text, starts):
    """Where each sentence begins, the white space before it counted to it."""
    ends = (a + len(text[a:b].rstrip()) for a, b in itertools.pairwise(starts))
    return [0, *ends]


def _line_starts(text):
    """Where each line of a text begins, but for those of white space alone."""
    return [match.start() for match in _LINE.finditer(text)]


def _batches(texts):
    """Yields lists of texts of about `PIECE_CHARACTERS`, or of one longer text."""
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= PIECE_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _pieces(text):
    """A text in parts of `PIECE_CHARACTERS` at most that end where lines do, if lines allow it."""
    pieces, begin = [], 0
    while len(text) - begin > PIECE_CHARACTERS:
        end = text.rfind("\n", begin, begin + PIECE_CHARACTERS)
        if end < 0:
            end = text.find("\n", begin + PIECE_CHARACTERS)
        if end < 0:
            break
        pieces.append(text[begin : end + 1])
        begin = end + 1
    return [*pieces, text[begin:]]


def warn_of_unknown(share):
    """Warns where a share of a corpus is unknown tokens, of which no objective learns anything."""
    if share > UNKNOWN:
        logging.warning(
            "%.1f %% of the tokens are unknown to the tokenizer; learn one from this text "
            "(train_tokenizer), or take one of its language.",
            100 * share,
        )
