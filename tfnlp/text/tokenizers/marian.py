"""Marian tokenizer: a SentencePiece model for each language over a token table."""

import json
import pathlib
import re

import numpy as np

from tfnlp.text.batching.encoding import EncodingsBuilder
from tfnlp.text.reading.lines import check_file
from tfnlp.text.reading.text_arguments import as_pairs, as_texts, room_for_text
from tfnlp.text.tokenizers.added_tokens import read_added_tokens
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.tokenizer_files import read_settings, save_tokenizer
from tfnlp.text.tokenizers.unigram import (
    UnigramTokenizer,
    read_sentencepiece,
    sentencepiece_package,
)
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import as_json, read_json

TOKENS = SPECIAL_TOKENS["marian"].tokens
SPECIAL = re.compile("(" + "|".join(map(re.escape, TOKENS.values())) + ")")
# The target-language code of multilingual models, at the start of a text.
LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)


class MarianTokenizer:
    """SentencePiece tokenizer with ids from vocab.json.

    The id of a piece is its entry in vocab.json, not its place in the model; a piece without an
    entry is unknown. The ids equal those of `MarianTokenizer` of `transformers`. It needs the
    sentencepiece package, which the device runtime lacks.

    Args:
        source: the SentencePiece model file of this language, bytes.
        target: the SentencePiece model file of the other language, bytes.
        tokens: {token: id} of this language.
        target_tokens: {token: id} of the other language; `tokens` where None.

    Raises:
        InputError: if a special token is missing.
    """

    family = "marian"
    mask_token_id = None

    def __init__(self, source, target, tokens, target_tokens=None):
        self._models, self._tokens = (source, target), dict(tokens)
        self._other_tokens = target_tokens
        SPECIAL_TOKENS["marian"].check_in(self._tokens)
        engine = sentencepiece_package().SentencePieceProcessor
        self._engine = engine(model_proto=source)
        self._names = {i: token for token, i in self._tokens.items()}
        ids = [self._tokens[TOKENS[role]] for role in ("pad_token", "unk_token", "eos_token")]
        self.pad_token_id, self.unknown_token_id, self._end = ids
        self.special_token_ids = sorted({*ids})

    @property
    def target(self):
        """The tokenizer of the other language."""
        tokens = self._tokens if self._other_tokens is None else self._other_tokens
        other_tokens = None if self._other_tokens is None else self._tokens
        return MarianTokenizer(*self._models[::-1], tokens, other_tokens)

    @property
    def vocabulary_size(self):
        """V, the number of tokens."""
        return len(self._tokens)

    def token_id(self, token):
        """Return the id of a token, or None if it has none."""
        return self._tokens.get(token)

    def token(self, token_id):
        """Return the token of an id, or None if there is none."""
        return self._names.get(token_id)

    def tokens(self, text):
        """Return the pieces of one text, without special tokens."""
        (text,) = as_texts([text], "text")
        pieces = []
        for part in SPECIAL.split(text):
            if SPECIAL.fullmatch(part):
                pieces.append(part)
                continue
            code = LANGUAGE.match(part)
            if code:
                pieces.append(code[0])
            pieces += self._engine.encode(part[code.end() if code else 0 :], out_type=str)
        return pieces

    def encode(self, texts, pairs=None, max_length=None):
        """Encode texts or pairs of texts as in `Tokenizer.encode`, with the end token behind.

        A text that is too long, or a pair of texts, is cut at its end.
        """
        room = None if max_length is None else room_for_text(max_length, special=1)
        rows = EncodingsBuilder()
        columns = [as_texts(texts)] if pairs is None else as_pairs(texts, pairs)
        for row in zip(*columns, strict=True):
            parts = [self._ids(text) for text in row]
            ids = [i for part in parts for i in part]
            segments = [number for number, part in enumerate(parts) for _ in part]
            last = segments[:room][-1] if ids else 0
            truncated = room is not None and len(ids) > room
            rows.add_ids([*ids[:room], self._end], [*segments[:room], last], truncated)
        return rows.finish()

    def encode_closed(self, texts, end_token_id):
        """Encode texts as in `Tokenizer.encode_closed`."""
        rows = EncodingsBuilder()
        for text in as_texts(texts):
            ids = [*self._ids(text), end_token_id]
            rows.add_ids(ids, [0] * len(ids))
        return rows.finish()

    def __call__(self, texts, pairs=None, max_length=None):
        """Return the model inputs of a batch, as in `Tokenizer`."""
        encodings = self.encode(texts, pairs, max_length)
        return encodings.padded(range(len(encodings)), self.pad_token_id)

    def decode(self, token_ids):
        """Decode ids to text, without special tokens, as in `Tokenizer.decode`."""
        if any(np.ndim(row) for row in token_ids):
            return [self.decode(row) for row in token_ids]
        ids = (int(i) for i in token_ids)
        pieces = [self._names.get(i, "") for i in ids if i not in self.special_token_ids]
        return "".join(pieces).replace("▁", " ").strip()

    def settings(self):
        """Return the fields of a tokenizer_config.json."""
        separate = {"separate_vocabs": self._other_tokens is not None}
        return {"tokenizer_class": SPECIAL_TOKENS["marian"].tokenizer_class, **TOKENS, **separate}

    save = save_tokenizer

    def files(self):
        """Return the files that define the tokenizer, {file name: bytes or text}."""
        source, target = self._models
        files = {"source.spm": source, "target.spm": target, "vocab.json": as_json(self._tokens)}
        if self._other_tokens is not None:
            files["target_vocab.json"] = as_json(self._other_tokens)
        return files

    @classmethod
    def from_files(cls, files):
        """Build the tokenizer from the result of `files`."""
        tokens, other = json.loads(files["vocab.json"]), files.get("target_vocab.json")
        other = None if other is None else json.loads(other)
        return cls(files["source.spm"], files["target.spm"], tokens, other)

    def _ids(self, text):
        return [self._tokens.get(token, self.unknown_token_id) for token in self.tokens(text)]


def read_marian(folder):
    """Load the tokenizer of a Marian folder.

    Returns:
        A `UnigramTokenizer` if both languages share one model without user-defined pieces, and its
        ids, as in models trained by tfnlp; else the `MarianTokenizer` of the sources.

    Raises:
        InputError: if a file is missing or broken.
    """
    folder = pathlib.Path(folder)
    paths = folder / "source.spm", folder / "target.spm"
    for path in paths:
        check_file(path)
    source, target = (path.read_bytes() for path in paths)
    pieces, character_map, symbols = read_sentencepiece(paths[0])
    tokens, settings = read_json(folder / "vocab.json"), read_settings(folder)
    for path, token, _ in read_added_tokens(folder):
        if token.content not in tokens:
            raise InputError(
                f"{path} adds {token.content!r}, which vocab.json lacks; give a folder without "
                "added tokens."
            )
    separate = settings.get("separate_vocabs")
    numbered = [(piece, i) for i, (piece, _) in enumerate(pieces)]
    try:
        shared = source == target and not separate and list(tokens.items()) == numbered
        if shared and not symbols:  # which sentencepiece itself keeps as they are
            lowercase = settings.get("do_lower_case")
            return UnigramTokenizer(pieces, "marian", lowercase, character_map=character_map)
        other = read_json(folder / "target_vocab.json") if separate else None
        return MarianTokenizer(source, target, tokens, other)
    except InputError as e:
        raise InputError(f"{folder}: {e}") from None
