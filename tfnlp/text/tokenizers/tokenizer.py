"""Base class of tokenizers: texts, pairs, words and windows to ids."""

import functools
import json
import pathlib
import threading
from typing import ClassVar

import numpy as np
import tokenizers
from tokenizers import models, pre_tokenizers

from tfnlp.text.batching.encoding import Encoding, Encodings, EncodingsBuilder
from tfnlp.text.reading.text_arguments import (
    as_pairs,
    as_sentences,
    as_texts,
    character_end,
    room_for_text,
)
from tfnlp.text.tokenizers.added_tokens import add_tokens_of
from tfnlp.text.tokenizers.tokenizer_files import read_settings, save_tokenizer
from tfnlp.text.tokenizers.word_starts import WordStarts, bytes_of_name, bytes_of_piece
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.settings import check_at_least

__all__ = ["Encoding", "Encodings", "Tokenizer"]

# The limit of BERT's own code (run_squad.py, max_query_length).
MAX_QUESTION_LENGTH = 64
# The engine keeps some 150 bytes a character until a piece is finished.
PIECE_CHARACTERS = 400_000
# The number of texts from which on a progress bar is shown.
LARGE = 100_000
# Some corpora contain unknown tokens for words that their makers left out, as WikiText does.
UNKNOWN_TOKENS = ("[UNK]", "<unk>")
# The length limit is part of an engine's state, so threads must not set it at the same time.
_ENGINES = threading.Lock()


class Tokenizer:
    """Tokenizer on an engine of Hugging Face's `tokenizers`.

    A child declares its `family`, `special_tokens` and `fields`, {field of tokenizer_config.json:
    argument}; `_read` gives the other arguments from a folder, and `files` writes them.

    Methods that take texts accept a single string as one text and read a lone surrogate as U+FFFD.
    They raise an `InputError` with the index of an item that is not a string.

    Args:
        engine: a `tokenizers.Tokenizer`.
        pad_token: the padding token.
    """

    family = special_tokens = None
    fields: ClassVar = {}

    def __init__(self, engine, pad_token):
        self._engine = engine
        self._engine.no_padding()
        self.pad_token_id = engine.token_to_id(pad_token)
        self.added_tokens = []
        self._added_contents = {}  # by id; the engine gives them as it normalises them
        added = engine.get_added_tokens_decoder()
        self._special_ids = {i for i, token in added.items() if token.special}

    def add_token(self, token):
        """Add a `tokenizers.AddedToken`, which texts are split at before anything else.

        It has its id in the vocabulary, or the next one.
        """
        self._engine.add_tokens([token])  # special or not, as it says
        self.added_tokens.append(token)
        self._added_contents[self.token_id(token.content)] = token.content
        if token.special:
            self._special_ids.add(self.token_id(token.content))

    def replace_flags(self, token):
        """Give a special token that texts are split at the flags of a `tokenizers.AddedToken`."""
        added = self._engine.get_added_tokens_decoder()
        if self.token_id(token.content) in added:
            token.special = True
            self._engine.add_special_tokens([token])

    def to_json(self):
        """Return the whole tokenizer as a JSON string, which `Tokenizer.from_json` loads."""
        with _ENGINES:
            self._engine.no_truncation()
            return self._engine.to_str()

    @classmethod
    def from_json(cls, text, pad_token):
        """Build a tokenizer from the result of `to_json`."""
        return cls(tokenizers.Tokenizer.from_str(text), pad_token)

    @classmethod
    def from_folder(cls, folder, family=None):
        """Load the tokenizer of a checkpoint folder, for a model of some family.

        Raises:
            InputError: if a file is missing, broken, or of another kind of tokenizer.
        """
        folder = pathlib.Path(folder)
        arguments, settings = cls._read(folder, family)
        try:
            tokenizer = cls(**arguments, **cls._options(settings | read_settings(folder)))
        except InputError as e:
            raise InputError(f"{folder}: {e}") from None
        add_tokens_of(folder, tokenizer)
        return tokenizer

    @classmethod
    def _options(cls, settings):
        """Return the arguments that the fields of a tokenizer_config.json give."""
        return {name: settings[field] for field, name in cls.fields.items() if field in settings}

    def settings(self):
        """Return the fields of a tokenizer_config.json."""
        options = {field: getattr(self, name) for field, name in self.fields.items()}
        names = {"tokenizer_class": self.special_tokens.tokenizer_class}
        return names | options | self.special_tokens.tokens

    save = save_tokenizer

    @property
    def vocabulary_size(self):
        """V, the number of tokens."""
        return self._engine.get_vocab_size()

    @property
    def first_added_id(self):
        """The id from which on tokens are added ones, behind the vocabulary."""
        added = {self.token_id(token.content) for token in self.added_tokens}
        size = self.vocabulary_size
        return next(i for i in range(size, -1, -1) if i - 1 not in added)

    @functools.cached_property  # which takes a second for 250,000 pieces
    def unknown_token_id(self):
        """The id of the unknown token; None in byte-level BPE, which has every byte."""
        model = self._engine.model
        if isinstance(model, models.Unigram):
            return json.loads(self._engine.to_str())["model"]["unk_id"]
        return None if model.unk_token is None else self.token_id(model.unk_token)

    @property
    def special_token_ids(self):
        """The ids of special tokens, which no text contains, in ascending order."""
        return sorted(self._special_ids)

    @property
    def mask_token_id(self):
        """The id of the mask token, or None."""
        ids = map(self.token_id, ("[MASK]", "<mask>"))
        return next((i for i in ids if i in self._special_ids), None)

    def word_starts(self):
        """Return the `WordStarts` of the vocabulary, which finds word boundaries in ids."""
        tokens = [self._engine.id_to_token(i) or "" for i in range(self.vocabulary_size)]
        model, as_bytes = self._engine.model, bytes_of_piece
        if isinstance(model, models.WordPiece):
            tokens = [token[2:] if token.startswith("##") else f" {token}" for token in tokens]
            as_bytes = str.encode
        elif isinstance(model, models.BPE) and not model.byte_fallback:
            as_bytes = bytes_of_name
        added = {self.token_id(t.content): f" {t.content}".encode() for t in self.added_tokens}
        return WordStarts(
            b"" if i in self._special_ids else added.get(i) or as_bytes(token)
            for i, token in enumerate(tokens)
        )

    def token_id(self, token):
        """Return the id of a token, or None if it has none."""
        return self._engine.token_to_id(token)

    def token(self, token_id):
        """Return the token of an id, or None if there is none."""
        return self._added_contents.get(token_id) or self._engine.id_to_token(token_id)

    def tokens_by_id(self):
        """Return all tokens in order of their ids, a list.

        Raises:
            InputError: if ids are missing, as list positions would differ from ids.
        """
        tokens = [self.token(i) for i in range(self.vocabulary_size)]
        if None in tokens:
            raise InputError(
                f"The tokenizer has {len(tokens)} tokens but none with the id "
                f"{tokens.index(None)}; give one whose ids are 0 to {len(tokens) - 1}, each once."
            )
        return tokens

    def __call__(self, texts, pairs=None, max_length=None):
        """Return the model inputs of a batch, by `encode`.

        Returns:
            A dict of `token_ids`, `segment_ids` and `padding_mask`, (B, L) int32 each.
        """
        encodings = self.encode(texts, pairs, max_length)
        return encodings.padded(range(len(encodings)), self.pad_token_id)

    def encode(self, texts, pairs=None, max_length=None, offsets=False, literal=False):
        """Encode texts, or pairs of texts, as ids.

        Args:
            texts: a list of strings; an empty one gives the special tokens alone.
            pairs: the second texts, one for each; or None.
            max_length: the maximum number of ids of an encoding, including special tokens; the
                longer text of a pair is cut first. None for no limit.
            offsets: whether to include character offsets.
            literal: whether special tokens in a text, such as "</s>", are read as plain text;
                unknown tokens always stay tokens.

        Returns:
            `Encodings`, a sequence of `Encoding`.

        Raises:
            InputError: if a text is not a string, or `max_length` leaves no room for one.
        """
        if pairs is None:
            texts = inputs = as_texts(texts)
        else:
            texts, pairs = as_pairs(texts, pairs)
            inputs = zip(texts, pairs, strict=True)
        if max_length is not None:
            self._room(max_length, pairs is not None)
        rows = EncodingsBuilder(offsets)
        engine = self._literal_engine if literal else self._engine
        for e in self._run(engine, inputs, len(texts), max_length, offsets):
            rows.add(e, truncated=bool(e.overflowing))
        return rows.finish()

    def encode_closed(self, texts, end_token_id):
        """Encode texts for a translator, with `end_token_id` as the only special token.

        Returns:
            `Encodings` with segment 0 alone.
        """
        texts, rows = as_texts(texts), EncodingsBuilder()
        options = {"offsets": False, "add_special_tokens": False}
        for e in self._run(self._engine, texts, len(texts), None, **options):
            rows.add_ids([*e.ids, end_token_id], [0] * (len(e.ids) + 1))
        return rows.finish()

    def encode_words(self, sentences, max_length, stride=0):
        """Encode sentences that are split into words, as windows of ids.

        Args:
            sentences: a list of lists of words.
            max_length, stride: as in `encode_text_windows`.

        Returns:
            `Encodings` with `words`, `example`, and offsets within each word. A sentence that fits
            is one window. A word that begins in an earlier window has no tokens marked in the
            next.

        Raises:
            InputError: as in `encode_text_windows`, for words.
        """
        sentences = as_sentences(sentences)
        return self._encode_as_windows(self._word_engine, sentences, max_length, stride, True)

    def encode_text_windows(self, texts, max_length, stride=0, literal=False):
        """Encode texts as windows of ids.

        Args:
            texts: a list of strings.
            max_length: the maximum number of ids of a window, including special tokens.
            stride: the number of tokens shared by consecutive windows.
            literal: as in `encode`.

        Returns:
            `Encodings` with `example` and offsets; a text that fits is one window.

        Raises:
            InputError: if a text is not a string, or `max_length` leaves no room for more
                than `stride` tokens.
        """
        engine = self._literal_engine if literal else self._engine
        return self._encode_as_windows(engine, as_texts(texts), max_length, stride)

    def _encode_as_windows(self, engine, inputs, max_length, stride, words=False):
        """Encode texts, or sentences of words if `words`, as overlapping windows."""
        room = self._room(max_length)
        if not 0 <= stride < room:
            raise InputError(
                f"stride={stride} must be at least 0 and below {room}, the tokens that a window "
                f"of max_length={max_length} has beside the special ones."
            )
        rows = EncodingsBuilder(offsets=True, words=words, examples=True)
        options = {"is_pretokenized": words, "stride": stride}
        step = room - stride  # tokens between the starts of consecutive windows
        for i, first in enumerate(self._run(engine, inputs, len(inputs), max_length, **options)):
            previous = continued = None
            for window in (first, *first.overflowing):
                if words:
                    of_tokens = [w for w in window.word_ids if w is not None]
                    is_cut = previous and previous[step - 1] == of_tokens[0]
                    continued, previous = of_tokens[0] if is_cut else None, of_tokens
                rows.add(window, example=i, continued=continued)
        return rows.finish()

    def encode_windows(
        self,
        questions,
        contexts,
        max_length,
        stride,
        max_question_length=MAX_QUESTION_LENGTH,
    ):
        """Encode questions with windows over their contexts.

        A question is cut at its end, as in BERT's own code. It takes at most half of the tokens of
        a window, so that the context gets the other half.

        Args:
            questions: a list of strings.
            contexts: the contexts, one for each question.
            max_length: the maximum number of ids of a window, including special tokens.
            stride: the number of context tokens shared by consecutive windows; at most half of the
                context tokens of a window.
            max_question_length: the maximum number of tokens of a question.

        Returns:
            `Encodings` with offsets and `example`; `truncated` is set where the question was.

        Raises:
            InputError: if a text is not a string, or a length leaves no room for one.
        """
        questions, contexts = as_pairs(questions, contexts, ("questions", "contexts"))
        room = self._room(max_length, pair=True)
        check_at_least(0, stride=stride)
        check_at_least(1, max_question_length=max_question_length)
        kept = self._cut_questions(questions, min(max_question_length, room // 2))
        longest = max((length for _, length in kept.values()), default=0)
        options = {"stride": min(stride, (room - longest) // 2), "strategy": "only_second"}
        pairs = ((kept[q][0], context) for q, context in zip(questions, contexts, strict=True))
        rows = EncodingsBuilder(offsets=True, examples=True)
        encodings = self._run(self._engine, pairs, len(questions), max_length, **options)
        for i, first in enumerate(encodings):
            truncated = kept[questions[i]][0] != questions[i]
            for window in (first, *first.overflowing):
                # The engine has the text of later windows as segment 1 in any template.
                segments = None if any(first.type_ids) else [0] * len(window.ids)
                rows.add(window, truncated, example=i, segments=segments)
        return rows.finish()

    def decode(self, token_ids):
        """Decode ids to text, without special tokens, as `transformers` does.

        Args:
            token_ids: (L,) integers, or a list of lists or (B, L) of them.

        Returns:
            A string, or a list with a string for each row.

        Raises:
            OverflowError: if an id is negative, such as a label's -100.
        """
        if any(np.ndim(row) for row in token_ids):
            return [self.decode(row) for row in token_ids]
        return self._engine.decode([i for i in map(int, token_ids) if i not in self._special_ids])

    def tokens(self, text):
        """Return the pieces of one text, without special tokens."""
        (text,) = as_texts([text], "text")
        with _ENGINES:
            self._engine.no_truncation()
            return self._engine.encode(text, add_special_tokens=False).tokens

    def encode_plain(self, text):
        """Return the ids of one text without special tokens around it, a list."""
        with _ENGINES:
            self._engine.no_truncation()
            return self._engine.encode(text, add_special_tokens=False).ids

    @functools.cached_property
    def _word_engine(self):
        """The engine for texts that are already split into words."""
        if not isinstance(self._engine.pre_tokenizer, pre_tokenizers.ByteLevel):
            return self._engine
        # Each word gets the space before it, as in running text.
        settings = json.loads(self._engine.to_str(), object_hook=_with_prefix_space)
        return tokenizers.Tokenizer.from_str(json.dumps(settings))

    @functools.cached_property
    def _literal_engine(self):
        """The engine that reads special tokens in texts as plain text, with the same ids."""
        if isinstance(self._engine.model, models.WordPiece):
            return self._engine  # reads them as text anyway
        kept = {*UNKNOWN_TOKENS, *(token.content for token in self.added_tokens)}
        dropped = {self.token(i) for i in self._special_ids} - kept
        settings = _without_tokens(json.loads(self.to_json()), dropped)
        return tokenizers.Tokenizer.from_str(json.dumps(settings))

    def _room(self, max_length, pair=False):
        return room_for_text(max_length, self._engine.num_special_tokens_to_add(pair))

    def _cut_questions(self, questions, limit):
        """Return {question: (its kept text, its number of tokens)} with at most `limit` tokens."""
        kept, questions = {}, dict.fromkeys(questions)
        options = {"max_length": None, "add_special_tokens": False}
        encodings = self._run(self._engine, questions, len(questions), **options)
        for question, e in zip(questions, encodings, strict=True):
            text, length, end = question, len(e.ids), limit
            # A cut word may have more pieces than it had before.
            while length > limit:
                place = e.offsets[end - 1][1] if end > 0 else 0
                text = question[: character_end(question, place)]
                length, end = len(self.tokens(text)), end - 1
            kept[question] = text, length
        return kept

    def _run(self, engine, inputs, count, max_length, offsets=True, **options):
        """Yield the engine's encoding of each of `count` inputs, batch by batch."""
        truncation = {key: options.pop(key) for key in ("stride", "strategy") if key in options}
        encode = engine.encode_batch if offsets else engine.encode_batch_fast

        def run(batch):
            with _ENGINES:
                engine.no_truncation()
                if max_length is not None:
                    engine.enable_truncation(max_length, **truncation)
                return encode(batch, **options)

        if count < LARGE:  # even a hidden bar takes longer than a short text
            for batch in text_batches(inputs):
                yield from run(batch)
            return
        with progress_bar(total=count, desc="tokenizing", unit="text") as bar:
            for batch in text_batches(inputs):
                yield from run(batch)
                bar.update(len(batch))


def text_batches(inputs):
    """Yield lists of inputs of about `PIECE_CHARACTERS` characters each."""
    batch, size = [], 0
    for text in inputs:
        batch.append(text)
        size += len(text) if isinstance(text, str) else sum(map(len, text))
        if size >= PIECE_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _with_prefix_space(part):
    """Return an object of engine settings with `add_prefix_space`, if it has that, set to True."""
    # In the vocabulary the name may be a token, with an id.
    return part | {"add_prefix_space": True} if part.get("add_prefix_space") is False else part


def _without_tokens(settings, tokens):
    """Return engine settings in which no text encodes to some tokens; other ids stay the same."""
    model = settings["model"]

    def renamed(token):
        return f" {token}" if token in tokens else token  # no text token contains a space

    if model["type"] == "Unigram":
        vocabulary = [[renamed(token), score] for token, score in model["vocab"]]
    else:
        vocabulary = {renamed(token): i for token, i in model["vocab"].items()}
    model = model | {"vocab": vocabulary}
    if "merges" in model:
        model["merges"] = [m for m in model["merges"] if "".join(m) not in tokens]
    added = [token for token in settings["added_tokens"] if token["content"] not in tokens]
    return settings | {"model": model, "added_tokens": added}
