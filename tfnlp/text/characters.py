"""A vocabulary of characters, as byte-level BPE."""

import collections

from tokenizers import pre_tokenizers

from tfnlp.text.byte_level_bpe import ByteLevelBpeTokenizer, first_tokens
from tfnlp.text.texts import as_texts


def train_characters(texts, vocabulary_size, family="gpt2"):
    """Makes characters of texts tokens, such as syllables of Hangul, the most frequent first.

    A byte is a token too: of those a character is made that the texts lack, or for which there is
    no room, so that nothing is unknown. No token has two characters, as bytes are merged within
    one alone.

    Args:
        texts: a list of strings.
        vocabulary_size: the most tokens, bytes and special ones counted.
        family: "gpt2", "roberta" or "deberta": which special tokens there are.

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
    """The bytes of a character as byte-level BPE writes them: a printable letter for each."""
    engine = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(piece for piece, _ in engine.pre_tokenize_str(character))
