"""Character vocabularies in the format of byte-level BPE."""

import collections

from tokenizers import pre_tokenizers

from tfnlp.text.byte_level_bpe import ByteLevelBpeTokenizer, first_tokens
from tfnlp.text.text_arguments import as_texts


def train_characters(texts, vocabulary_size, family="gpt2"):
    """Build a vocabulary of the most frequent characters, such as Hangul syllables.

    All bytes are tokens too. A character that is absent from the texts, or that does not fit the
    vocabulary, is encoded as its bytes, so there are no unknown tokens. No token holds two
    characters, since merges stay within one.

    Args:
        texts: a list of strings.
        vocabulary_size: the maximum vocabulary size, including bytes and special tokens.
        family: "gpt2", "roberta" or "deberta"; determines the special tokens.

    Returns:
        A `ByteLevelBpeTokenizer`.

    Raises:
        InputError: if the size has no room for the bytes.
    """
    special, alphabet = first_tokens(family, vocabulary_size)
    counts = collections.Counter()
    for text in as_texts(texts):
        counts.update(text)
    ids, merges = {token: i for i, token in enumerate([*special, *alphabet])}, []
    for character in sorted(counts, key=lambda one: (-counts[one], one)):
        name = byte_names(character)
        parts = [name[: i + 1] for i in range(1, len(name))]
        new = [i for i, part in enumerate(parts) if part not in ids]
        if len(ids) + len(new) > vocabulary_size:
            break
        for i in new:
            ids[parts[i]] = len(ids)
            merges.append((name[: i + 1], name[i + 1]))
    return ByteLevelBpeTokenizer(ids, merges, family)


def byte_names(character):
    """Return the bytes of a character in the notation of byte-level BPE, a letter for each."""
    engine = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(piece for piece, _ in engine.pre_tokenize_str(character))
