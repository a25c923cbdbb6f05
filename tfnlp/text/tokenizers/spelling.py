"""Words as characters, and the tokenizer of whole words that gives both.

Characters are the bytes of UTF-8, as in ELMo (Peters et al. 2018; `bilm-tf`): every script has
them, and a Hangul syllable is three. Ids are theirs plus 1, so that 0 is padding.
"""

import collections
import dataclasses

import numpy as np

from tfnlp.text.batching.encoding import FurtherInput
from tfnlp.text.reading.text_arguments import as_pairs, as_sentences, as_texts
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.wordpiece import FIRST_TOKENS, WordPieceTokenizer
from tfnlp.utils.errors import InputError

# Character ids of a word, with the marks of its begin and its end.
LONGEST = 50
BEGIN_WORD, END_WORD = 259, 260
# Words that are one character, beside the marks.
MARKS = {"[CLS]": [257], "[SEP]": [258], "[PAD]": None}
UNKNOWN_WORD = FIRST_TOKENS.index("[UNK]")
# Words are looked up as they are written.
WHOLE = {"lowercase": False, "strip_accents": False, "split_cjk": False}


def spell(words):
    """Return the character ids of words, (words, 50) uint16, 0 behind each; "[PAD]" has none.

    Bytes from the 49th on are left out.
    """
    table = np.zeros((len(words), LONGEST), "uint16")
    for row, word in zip(table, words, strict=True):
        characters = MARKS.get(word, word)
        if isinstance(characters, str):
            characters = [byte + 1 for byte in word.encode("utf-8", "replace")[: LONGEST - 2]]
        if characters is not None:
            characters = [BEGIN_WORD, *characters, END_WORD]
            row[: len(characters)] = characters
    return table


class SpellingTokenizer(WordPieceTokenizer):
    """Tokenizer of whole words, whose encodings have their characters too.

    Words outside of the vocabulary have the id of [UNK], and their own characters.

    Args:
        vocabulary: the special tokens of `FIRST_TOKENS`, and words from the commonest on.
        options: as in `WordPieceTokenizer`.

    Raises:
        InputError: for other first tokens.
    """

    family = "elmo"
    special_tokens = SPECIAL_TOKENS["elmo"]

    def __init__(self, vocabulary, **options):
        if tuple(vocabulary[: len(FIRST_TOKENS)]) != FIRST_TOKENS:
            raise InputError(
                f"The words begin with {', '.join(vocabulary[:5])} in place of "
                f"{', '.join(FIRST_TOKENS)}; give a vocabulary from train_tokenizer with "
                "kind=words."
            )
        super().__init__(vocabulary, **WHOLE | options)

    def encode(self, texts, pairs=None, max_length=None, offsets=False, literal=False):
        texts = as_texts(texts) if pairs is None else as_pairs(texts, pairs)
        texts, pairs = (texts, None) if pairs is None else texts
        rows = super().encode(texts, pairs, max_length, True, literal)
        sides = (texts, pairs)
        return self._spelled(rows, rows.sources, lambda row, side: sides[side][row])

    def encode_words(self, sentences, max_length, stride=0):
        sentences = as_sentences(sentences)
        rows = super().encode_words(sentences, max_length, stride)
        examples = rows.examples
        return self._spelled(rows, rows.words, lambda row, word: sentences[examples[row]][word])

    def encode_text_windows(self, texts, max_length, stride=0, literal=False):
        texts = as_texts(texts)
        rows = super().encode_text_windows(texts, max_length, stride, literal)
        examples = rows.examples
        return self._spelled(rows, rows.sources, lambda row, _: texts[examples[row]])

    def _spelled(self, rows, places, read):
        """Return rows with the `characters` (B, L, W) of each token as a further input.

        Args:
            rows: `Encodings` with offsets.
            places: (tokens,), the text or word of each token in its row; -1 for tokens that are
                spelled as in the vocabulary, such as special ones.
            read: function from the number of a row and a place to the text.
        """
        numbers = collections.defaultdict(lambda: len(numbers), {"[PAD]": 0})
        row_of_token = np.repeat(np.arange(len(rows.truncated)), np.diff(rows.starts))
        columns = (rows.token_ids, row_of_token, places, rows.offsets)
        ids = [
            numbers[self.token(token) if place < 0 else read(row, place)[start:end]]
            for token, row, place, (start, end) in zip(*(c.tolist() for c in columns), strict=True)
        ]
        characters = FurtherInput(np.asarray(ids, "int32"), spell(list(numbers)))
        return dataclasses.replace(rows, further={"characters": characters})


def train_words(texts, vocabulary_size, family="elmo"):
    """Return the tokenizer of the commonest words of texts, split at spaces and punctuation.

    Args:
        texts: a list of strings.
        vocabulary_size: the maximum vocabulary size, including special tokens.
        family: "elmo" for a `SpellingTokenizer`, "bert" for a `WordPieceTokenizer`, which is the
            same without characters.
    """
    make = SpellingTokenizer if family == "elmo" else WordPieceTokenizer
    split, counts = make(FIRST_TOKENS, **WHOLE).split_words, collections.Counter()
    for text in as_texts(texts):
        counts.update(split(text))
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return make([*FIRST_TOKENS, *words[: vocabulary_size - len(FIRST_TOKENS)]], **WHOLE)
