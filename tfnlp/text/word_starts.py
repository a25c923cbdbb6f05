"""Which tokens of texts begin a word."""

import numpy as np

# White space of Unicode in UTF-8, as numbers, by how many bytes it has.
_WHITE = {1: [], 2: [], 3: []}
for _code in range(0x3001):
    if chr(_code).isspace():
        _character = chr(_code).encode()
        _WHITE[len(_character)].append(int.from_bytes(_character))
# What stands for the bytes of a token that is no text.
_NO_TEXT = b"\0"
# Bytes that byte-level BPE writes as themselves; the others are letters from U+0100 on.
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_BYTES = {chr(byte): byte for byte in _PRINTABLE} | {
    chr(256 + n): byte for n, byte in enumerate(sorted({*range(256)} - {*_PRINTABLE}))
}


class WordStarts:
    """Which tokens begin a word, by the bytes of the tokens.

    A word is a run of white space and what follows it: in byte-level BPE, and between pieces of
    SentencePiece, white space belongs to the word behind it. A character of white space may be of
    several tokens, as bytes.

    Args:
        tokens: for each id the bytes of its text; empty where it has none.
    """

    def __init__(self, tokens):
        tokens = [token or _NO_TEXT for token in [*tokens, _NO_TEXT]]  # the last begins rows
        self.bytes = np.frombuffer(b"".join(tokens), "uint8")
        self.ends = np.cumsum([len(token) for token in tokens])

    def __call__(self, ids):
        """Return whether each token begins a word, where white space is before it.

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
    """Which bytes (N,) are of white space: (N,) bool."""
    white, codes = np.zeros(len(text), bool), text
    for length, characters in _WHITE.items():
        (places,) = np.nonzero(np.isin(codes, characters))
        white[places[:, None] + np.arange(length)] = True
        codes = codes[:-1] << 8 | text[length:]
    return white


def bytes_of_name(name):
    """Return the bytes of a token of byte-level BPE, which writes a letter for each."""
    return bytes(_BYTES[letter] for letter in name)
