"""WordPiece vocabularies of whole words, such as those of a file of word vectors."""

import collections

from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.wordpiece import FIRST_TOKENS, WordPieceTokenizer
from tfnlp.utils.errors import InputError

# Occurrences of a further word at least.
MIN_COUNT = 2


def word_tokenizer(words, texts, vocabulary_size=None):
    """Return a WordPiece tokenizer whose tokens are words: each is one token or [UNK].

    Words that BERT's tokenizer splits, such as "don't", cannot be tokens and are left out. It
    lowercases unless a word has a capital. Words of the texts that are not in the list and occur
    twice become tokens too, as in Kim 2014; not so where the words are pieces, with "##" before
    those that continue a word.

    Args:
        words: a list of strings, the commonest first.
        texts: the training texts, a list of strings.
        vocabulary_size: the maximum vocabulary size, including special tokens; None for any.

    Raises:
        InputError: if none of the words can be a token.
    """
    lowercase = not any(word != word.lower() for word in words)
    split = WordPieceTokenizer(FIRST_TOKENS, lowercase, strip_accents=False).split_words
    pieces = ((word, word.removeprefix("##")) for word in words)
    tokens = [word for word, piece in pieces if split(piece) == [piece]]
    if not tokens:
        raise InputError(
            f"None of the {len(words)} words, such as {words[0]!r}, is a word as BERT's tokenizer "
            "splits texts; give vectors of other words."
        )
    if not any(word.startswith("##") for word in tokens):
        counts = collections.Counter(word for text in as_texts(texts) for word in split(text))
        tokens += [word for word, count in counts.most_common() if count >= MIN_COUNT]
    tokens = [*dict.fromkeys([*FIRST_TOKENS, *tokens])][:vocabulary_size]
    return WordPieceTokenizer(tokens, lowercase, strip_accents=False)
