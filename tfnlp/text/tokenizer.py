"""What every tokenizer does: texts, pairs, words and windows to ids, by one engine."""

import dataclasses

import tokenizers
from tokenizers import pre_tokenizers


@dataclasses.dataclass(frozen=True)
class Encoding:
    """One text, or a pair, or a window of one, as ids.

    Args:
        token_ids: list of ids, special tokens among them.
        segment_ids: which segment each token is of; as long as `token_ids`.
        cut: whether tokens were dropped to keep to the length limit.
        offsets: the first character of each token and the one after its last, counted in its
            own text; (0, 0) for special tokens. Only where asked for, else None.
        sources: 0 for tokens of the first text, 1 for the second's, None for special ones;
            likewise.
        words: the word that each token is of, None for special ones; of `encode_words` only.
        example: the text that a window is of; of `encode_words` and `encode_windows` only.
    """

    token_ids: list
    segment_ids: list
    cut: bool = False
    offsets: list | None = None
    sources: list | None = None
    words: list | None = None
    example: int | None = None


class Tokenizer:
    """Texts to ids by an engine of Hugging Face's `tokenizers`.

    Args:
        engine: a `tokenizers.Tokenizer`.
        pad_token: the token that fills up a batch.
    """

    def __init__(self, engine, pad_token):
        self._engine = engine
        self._engine.no_padding()
        self.pad_token_id = engine.token_to_id(pad_token)

    def to_json(self):
        """The whole tokenizer as one text, which `Tokenizer.from_json` reads."""
        self._engine.no_truncation()
        return self._engine.to_str()

    @classmethod
    def from_json(cls, text, pad_token):
        """The tokenizer that `to_json` wrote."""
        return cls(tokenizers.Tokenizer.from_str(text), pad_token)

    @property
    def vocabulary_size(self):
        """V, the number of tokens."""
        return self._engine.get_vocab_size()

    def token_id(self, token):
        """The id of a token, or None."""
        return self._engine.token_to_id(token)

    def encode(self, texts, pairs=None, max_length=None, offsets=False):
        """Texts, or pairs of texts, as ids.

        Args:
            texts: a list of strings; an empty one gives the special tokens alone.
            pairs: the second texts, one for each; or None.
            max_length: the most ids an encoding may have, special tokens counted; the
                longer text of a pair is cut first. No limit where None.
            offsets: whether the encodings say where their tokens stand.

        Returns:
            A list of `Encoding`.
        """
        self._truncate(self._engine, max_length)
        inputs = list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
        return [_encoding(e, offsets) for e in self._engine.encode_batch(inputs)]

    def encode_words(self, sentences, max_length, stride=0):
        """Sentences that are split into words, as windows of ids.

        Args:
            sentences: a list of lists of words.
            max_length: the most ids a window may have, special tokens counted.
            stride: how many tokens a window shares with the one before.

        Returns:
            A list of `Encoding` with `words`, `example` and offsets, counted in each word; a
            sentence that fits is one window.
        """
        engine = self._word_engine()
        self._truncate(engine, max_length, stride=stride)
        return [
            dataclasses.replace(_encoding(window, offsets=True), words=window.word_ids, example=i)
            for i, whole in enumerate(engine.encode_batch(list(sentences), is_pretokenized=True))
            for window in (whole, *whole.overflowing)
        ]

    def encode_windows(self, questions, contexts, max_length, stride):
        """Pairs as windows over the second text, the first one whole in each.

        Args:
            questions: a list of strings.
            contexts: the texts to read, one for each.
            max_length: the most ids a window may have, special tokens counted.
            stride: how many tokens of the context a window shares with the one before.

        Returns:
            A list of `Encoding` with offsets and `example`.
        """
        self._truncate(self._engine, max_length, stride=stride, strategy="only_second")
        pairs = list(zip(questions, contexts, strict=True))
        return [
            dataclasses.replace(_encoding(window, offsets=True), example=i)
            for i, whole in enumerate(self._engine.encode_batch(pairs))
            for window in (whole, *whole.overflowing)
        ]

    def tokens(self, text):
        """The pieces of one text, without special tokens."""
        self._engine.no_truncation()
        return self._engine.encode(text, add_special_tokens=False).tokens

    @property
    def num_special_tokens(self):
        """How many special tokens a pair has."""
        return self._engine.num_special_tokens_to_add(is_pair=True)

    def _word_engine(self):
        """The engine for words that are split already."""
        if not isinstance(self._engine.pre_tokenizer, pre_tokenizers.ByteLevel):
            return self._engine
        # Each word gets the space before it that it has in running text.
        engine = tokenizers.Tokenizer.from_str(self._engine.to_str())
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        return engine

    def _truncate(self, engine, max_length, **kwargs):
        if max_length is None:
            engine.no_truncation()
        else:
            engine.enable_truncation(max_length, **{"strategy": "longest_first"} | kwargs)


def _encoding(e, offsets=False):
    places = {"offsets": e.offsets, "sources": e.sequence_ids} if offsets else {}
    return Encoding(e.ids, e.type_ids, cut=bool(e.overflowing), **places)
