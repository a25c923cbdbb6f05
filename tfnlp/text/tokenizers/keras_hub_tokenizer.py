"""Tokenizers of keras-hub, loaded from preset folders without keras-hub, or live.

`tokenizer.save_to_preset` writes tokenizer.json, which names a class, and the vocabulary under
assets/tokenizer/.
"""

import contextlib
import pathlib
import tempfile

from tfnlp.text.tokenizers.byte_level_bpe import ByteLevelBpeTokenizer, read_vocabulary
from tfnlp.text.tokenizers.special_tokens import WORDPIECE_CLASSES
from tfnlp.text.tokenizers.tokenizer_files import FILES, read_token_lines
from tfnlp.text.tokenizers.unigram import UnigramTokenizer, read_sentencepiece
from tfnlp.text.tokenizers.wordpiece import WordPieceTokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

ASSETS = "assets/tokenizer"
BPE = {"RobertaTokenizer": "roberta", "GPT2Tokenizer": "gpt2"}
UNIGRAM = {"AlbertTokenizer": "albert", "DebertaV3Tokenizer": "deberta-v2"}
# Settings that change the ids, each with its only supported value.
FIXED = {
    "split": True,
    "special_tokens_in_strings": False,
    "suffix_indicator": "##",
    "oov_token": "[UNK]",
    "add_bos": False,
    "add_eos": False,
}


def is_preset_file(path):
    """Return whether a JSON file is keras-hub's, not a Hugging Face file of the same name."""
    if not path.exists():
        return False
    fields = read_json(path)
    return "class_name" in fields and "model_type" not in fields


def is_preset(folder):
    """Return whether a folder has a keras-hub tokenizer, or is such a preset without one."""
    # tokenizer.json is checked last, as that of Hugging Face may be large.
    if not (folder / ASSETS).is_dir() and not is_preset_file(folder / "config.json"):
        return False
    missing = not any((folder / name).exists() for name in FILES)
    return missing or is_preset_file(folder / "tokenizer.json")


def read_preset_tokenizer(folder):
    """Load the tokenizer of a preset folder.

    The preset's settings decide on lowercasing and on stripping accents. Texts are lowercased as
    in BERT, character by character. keras-hub instead folds case by NFKC ("ㅋㅋ" becomes initial
    consonants, "ß" becomes "ss"), so ids of such texts differ.

    Raises:
        InputError: if the tokenizer is missing or broken, of an unsupported class, or has an
            unsupported setting.
    """
    path = folder / "tokenizer.json"
    if not path.exists():
        raise InputError(
            f"{folder} is a preset of keras-hub without a tokenizer; write it too, by "
            "tokenizer.save_to_preset(folder)."
        )
    fields = read_json(path)
    name, settings = fields.get("class_name"), fields.get("config") or {}
    for setting, value in FIXED.items():
        if settings.get(setting, value) != value:
            raise InputError(
                f"{path}: {setting}={settings[setting]!r} is not supported, only {value!r}; make "
                "the tokenizer without it, and save it again."
            )
    assets = folder / ASSETS
    if name in WORDPIECE_CLASSES:
        tokens, names = read_token_lines(assets / "vocabulary.txt"), ("lowercase", "strip_accents")
        return WordPieceTokenizer(tokens, *(settings.get(name, False) for name in names))
    if name in BPE:
        vocabulary = read_vocabulary(assets / "vocabulary.json", assets / "merges.txt")
        return ByteLevelBpeTokenizer(*vocabulary, BPE[name], settings.get("add_prefix_space"))
    if name in UNIGRAM:
        pieces, character_map, _ = read_sentencepiece(assets / "vocabulary.spm")
        return UnigramTokenizer(pieces, UNIGRAM[name], False, True, character_map)
    classes = ", ".join((*WORDPIECE_CLASSES, *BPE, *UNIGRAM))
    raise InputError(
        f"{path}: the class {name} is none that tfnlp reads of keras-hub; those are {classes}."
    )


def convert_tokenizer(tokenizer):
    """Return the tokenizer of a live keras-hub tokenizer, as `read_preset_tokenizer` does."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_to_preset(folder)
        return read_preset_tokenizer(pathlib.Path(folder))


def read_pad_token_id(folder):
    """Return the padding id of a preset's tokenizer, or None if tfnlp cannot read it."""
    if is_preset_file(folder / "tokenizer.json"):
        with contextlib.suppress(InputError):  # raised again where the tokenizer is loaded
            return read_preset_tokenizer(folder).pad_token_id
    return None
