"""The tokenizer of a checkpoint folder, whichever it has."""

import pathlib

from tfnlp.errors import InputError
from tfnlp.files import read_json
from tfnlp.text import byte_level_bpe, unigram
from tfnlp.text.byte_level_bpe import ByteLevelBpeTokenizer
from tfnlp.text.unigram import UnigramTokenizer
from tfnlp.text.wordpiece import WordPieceTokenizer

WORDPIECE_FAMILIES = ("bert", "distilbert", "electra")


def load_tokenizer(folder):
    """The tokenizer of a checkpoint folder.

    Which kind it is follows the family that config.json names; without config.json, the
    tokenizer is WordPiece.

    Returns:
        A `WordPieceTokenizer`, `ByteLevelBpeTokenizer` or `UnigramTokenizer`.

    Raises:
        InputError: if its files are missing, broken, or of another kind of tokenizer.
    """
    folder = pathlib.Path(folder)
    family = "bert"
    if (folder / "config.json").exists():
        family = read_json(folder / "config.json").get("model_type", "bert")
    # Korean ALBERTs and others come with WordPiece: no other kind has a vocab.txt.
    if family in WORDPIECE_FAMILIES or (folder / "vocab.txt").exists():
        return WordPieceTokenizer.from_folder(folder)
    if family in byte_level_bpe.FAMILIES:
        return ByteLevelBpeTokenizer.from_folder(folder, family)
    if family in unigram.FAMILIES:
        return UnigramTokenizer.from_folder(folder, family)
    raise InputError(f"{folder}: there is no tokenizer for the family {family!r}.")
