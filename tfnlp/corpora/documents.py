"""Documents in unlabelled files, and their ids with sentence boundaries."""

import glob
import itertools
import pathlib
import re

import numpy as np
from absl import logging

from tfnlp.corpora.sentence_splitting import sentence_starts
from tfnlp.text.reading.lines import check_file, holds_nothing, read_lines
from tfnlp.text.reading.readers import has_columns, read_columns
from tfnlp.text.tokenizers.tokenizer import PIECE_CHARACTERS, text_batches
from tfnlp.utils.errors import InputError

# The share of unknown tokens above which the tokenizer probably belongs to other texts.
UNKNOWN = 0.05
_LINE = re.compile(r"^[^\S\n]*\S", re.MULTILINE)


def find_files(patterns):
    """Return the files that paths and patterns name, each once, as `Path`s.

    A pattern is one such as `wiki/*.txt.gz`.

    Raises:
        InputError: if a path does not exist or is a folder, or no file matches a pattern.
    """
    files = {}
    for pattern in map(str, patterns):
        paths = [pattern]
        if glob.has_magic(pattern) and not pathlib.Path(pattern).exists():
            paths = sorted(path for path in glob.glob(pattern) if pathlib.Path(path).is_file())
            if not paths:
                raise InputError(f"No file matches {pattern}; check the pattern.")
        for path in map(pathlib.Path, paths):
            check_file(path)
            files[path] = None
    return list(files)


def read_documents(paths, documents="blank_lines", text_column="sentence", on_read=None):
    """Yield the text of each document of some files, "" for an empty one.

    In a file with columns (.tsv, .csv, .json, .jsonl or .parquet) each row is a
    document.

    Args:
        paths: the files.
        documents: the separator of documents in plain text: "blank_lines", "lines" (each line is a
            document) or "files" (each file is one).
        text_column: the column of the text, if there are columns.
        on_read: a progress callback that receives the number of bytes read from all files so far.

    Raises:
        InputError: as in `read_lines` and `read_columns`. An empty file is an empty document
            instead, with a logged warning.
    """
    before, documents_in = 0, DOCUMENTS[documents]
    for path in map(pathlib.Path, paths):
        report = on_read and _after(before, on_read)
        if holds_nothing(path):
            logging.warning("%s is empty.", path)
            texts = iter([""])
        elif has_columns(path):
            texts = (row[text_column] for _, row in read_columns(path, [text_column], report))
        else:
            texts = documents_in(line for _, line in read_lines(path, report))
        for text in texts:
            yield text.strip()
        before += path.stat().st_size
        if on_read:
            on_read(before)


def _after(before, on_read):
    return lambda position: on_read(before + position)


def _paragraphs(lines):
    """Yield the documents between blank lines."""
    for is_blank, group in itertools.groupby(lines, key=lambda line: not line.strip()):
        if not is_blank:
            yield "\n".join(group)


def _whole_file(lines):
    yield "\n".join(lines)


# Separators of documents in plain text, with functions from lines to documents.
DOCUMENTS = {"blank_lines": _paragraphs, "lines": iter, "files": _whole_file}


def encode_documents(texts, tokenizer, sentences="split"):
    """Yield the ids of each document without special tokens, and its sentence lengths.

    A document is tokenised as running text, and sentence boundaries are mapped onto its tokens. So
    a tokenizer that includes the white space before a word (byte-level BPE) yields the same ids
    however sentences are split. "[SEP]" in a document is plain text for every tokenizer. A
    document above `PIECE_CHARACTERS` is tokenised in parts that end at line ends, if it has any.

    Args:
        texts: an iterable of strings.
        tokenizer: see `tfnlp.text`.
        sentences: "split" to use `tfnlp.corpora.sentence_splitting`, or "lines" for a sentence
            on each line.

    Returns:
        A generator of (tokens,) int32 and (sentences,) int64, one pair for each text. Both are
        empty for a text without tokens. No sentence is empty.
    """
    starts = SENTENCES[sentences]
    for batch in text_batches(texts):
        pieces, piece_documents = [], []
        for number, text in enumerate(batch):
            for piece in _pieces(text):
                pieces.append(piece)
                piece_documents.append(number)
        ids, ends, lengths, sentence_ends = _encode_pieces(pieces, tokenizer, starts)
        # A document ends with its last piece.
        last = np.flatnonzero(np.diff(piece_documents, append=len(batch)))
        ends, sentence_ends = ends[last], sentence_ends[last]
        parts = np.split(ids, ends[:-1]), np.split(lengths, sentence_ends[:-1])
        for token_ids, sentence_lengths in zip(*parts, strict=True):
            yield token_ids, sentence_lengths[sentence_lengths > 0]


def _encode_pieces(pieces, tokenizer, starts):
    """Return the ids and sentence lengths of all pieces, and where each piece ends in both.

    The order is ids, ends in ids, sentence lengths, ends in sentences.
    """
    encodings = tokenizer.encode(pieces, offsets=True, literal=True)
    is_text = encodings.sources >= 0  # the others are special tokens
    ids = encodings.token_ids[is_text]
    ends = np.append(0, np.cumsum(is_text))[encodings.starts[1:]]
    # Character positions count through all pieces. White space belongs to the sentence after
    # it, as some tokens include the space before a word. A token is located by its last
    # character.
    bases = np.cumsum([0, *(len(piece) + 1 for piece in pieces)])
    counts = np.diff(ends, prepend=0)
    offsets = encodings.offsets[is_text].astype("int64")
    places = np.maximum(offsets[:, 0], offsets[:, 1] - 1) + np.repeat(bases[:-1], counts)
    borders = [_borders(piece, starts(piece)) for piece in pieces]
    sentence_ends = np.cumsum([len(starts_of_piece) for starts_of_piece in borders])
    flat = np.concatenate(borders) + np.repeat(bases[:-1], np.diff(sentence_ends, prepend=0))
    sentence = np.searchsorted(flat, np.maximum.accumulate(places), side="right") - 1
    return ids, ends, np.bincount(sentence, minlength=len(flat)), sentence_ends


def _borders(text, starts):
    """Return where each sentence begins, including the white space before it."""
    ends = (a + len(text[a:b].rstrip()) for a, b in itertools.pairwise(starts))
    return [0, *ends]


def _line_starts(text):
    """Return the start of each line, except lines of white space alone."""
    return [match.start() for match in _LINE.finditer(text)]


# Separators of sentences in a document, with functions from a text to the start of each.
SENTENCES = {"split": sentence_starts, "lines": _line_starts}


def _pieces(text):
    """Return a text in parts that end at line ends.

    A part has at most `PIECE_CHARACTERS` characters unless a single line is longer.
    """
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
    """Log a warning if a large share of the tokens of texts is unknown, as no model reads them."""
    if share > UNKNOWN:
        logging.warning(
            "%.1f %% of the tokens are unknown to the tokenizer, so that no model reads them; "
            "take a model of this language, or for a new one learn a tokenizer "
            "(train_tokenizer).",
            100 * share,
        )


def hold_out(texts, share=0.1):
    """Split texts into a first part and the last `share` of their characters.

    The split is at the start of a line. In a text without lines it is exactly at the share.

    Raises:
        InputError: if either part would be blank.
    """
    left, first, last = round(sum(map(len, texts)) * (1 - share)), [], []
    for text in texts:
        cut = min(max(left, 0), len(text))
        if 0 < cut < len(text):
            cut = text.rfind("\n", 0, cut) + 1 or cut
        first.append(text[:cut])
        last.append(text[cut:])
        left -= len(text)
    first, last = ([text for text in part if text.strip()] for part in (first, last))
    if not first or not last:
        raise InputError("`corpus` is too short to hold out a tenth of it; give more, or a `dev`.")
    return first, last
