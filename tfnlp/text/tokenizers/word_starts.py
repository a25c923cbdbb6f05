"""Detection of tokens that begin a word."""

import re

import numpy as np

# Unicode white space in UTF-8 as integers, by the number of bytes.
_WHITE = {1: [], 2: [], 3: []}
for _code in range(0x3001):
    if chr(_code).isspace():
        _character = chr(_code).encode()
        _WHITE[len(_character)].append(int.from_bytes(_character))
# The bytes of a token without text.
_NO_TEXT = b"\0"
# Bytes that byte-level BPE writes as themselves; the others are letters from U+0100 on.
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_BYTES = {chr(byte): byte for byte in _PRINTABLE} | {
    chr(256 + n): byte for n, byte in enumerate(sorted({*range(256)} - {*_PRINTABLE}))
}


class WordStarts:
    """Lookup of the tokens that begin a word, by the bytes of the tokens.

    A word is a run of white space and the characters after it: byte-level BPE and SentencePiece
    attach white space to the following word. A white-space character may span several byte tokens.

    Args:
        tokens: the bytes of each id's text; empty if it has none.
    """

    def __init__(self, tokens):
        tokens = [token or _NO_TEXT for token in [*tokens, _NO_TEXT]]  # the last precedes each row
        self.bytes = np.frombuffer(b"".join(tokens), "uint8")
        self.ends = np.cumsum([len(token) for token in tokens])

    def __call__(self, ids):
        """Return whether each token begins a word, that is, a run of white space.

        Args:
            ids: (B, L) integers.

        Returns:
            (B, L) bool.
        """
        ids = np.pad(ids, [(0, 0), (1, 0)], constant_values=len(self.ends) - 1)
        ends = self.ends[ids.ravel()]
        lengths = ends - np.where(ids.ravel() > 0, self.ends[ids.ravel() - 1], 0)
        firsts = np.cumsum(lengths) - lengths
        text = self.bytes[np.arange(lengths.sum()) + np.repeat(ends - lengths - firsts, lengths)]
        white = _white(text.astype("int64"))
        starts = white[firsts] & ~white[np.maximum(firsts - 1, 0)]
        return starts.reshape(ids.shape)[:, 1:]


def _white(text):
    """Return whether each byte (N,) belongs to a white-space character: (N,) bool."""
    white, codes = np.zeros(len(text), bool), text
    for length, characters in _WHITE.items():
        (places,) = np.nonzero(np.isin(codes, characters))
        white[places[:, None] + np.arange(length)] = True
        codes = codes[:-1] << 8 | text[length:]
    return white


def bytes_of_name(name):
    """Return the bytes of a byte-level BPE token, which is written as a letter for each byte."""
    return bytes(_BYTES[letter] for letter in name)


def bytes_of_piece(piece):
    """Return the bytes of a piece of SentencePiece; of one such as "<0x0A>" that byte."""
    if re.fullmatch("<0x[0-9A-F]{2}>", piece):
        return bytes.fromhex(piece[3:5])
    return piece.replace("▁", " ").encode()
