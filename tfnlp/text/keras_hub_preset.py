"""Tokenizers of keras-hub's preset folders, read without keras-hub.

`tokenizer.save_to_preset` writes tokenizer.json, which names a class, and the vocabulary under
assets/tokenizer/.
"""

from tfnlp.errors import InputError
from tfnlp.files import read_json
from tfnlp.text.byte_level_bpe import ByteLevelBpeTokenizer, read_merges
from tfnlp.text.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizer_files import FILES
from tfnlp.text.unigram import UnigramTokenizer, read_sentencepiece
from tfnlp.text.wordpiece import WordPieceTokenizer, read_vocabulary

ASSETS = "assets/tokenizer"
ASSET_NAMES = ("vocabulary.txt", "vocabulary.json", "merges.txt", "vocabulary.spm")
WORDPIECE = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
BPE = {"RobertaTokenizer": "roberta", "GPT2Tokenizer": "gpt2"}
UNIGRAM = {"AlbertTokenizer": "albert", "DebertaV3Tokenizer": "deberta-v2"}
# Settings that would give other ids, and the one value of each that is supported.
FIXED = {
    "split": True,
    "special_tokens_in_strings": False,
    "suffix_indicator": "##",
    "oov_token": "[UNK]",
    "add_bos": False,
    "add_eos": False,
}


def is_preset_file(path):
    """Whether a JSON file is one of keras-hub's, and not of the same name by Hugging Face."""
    if not path.exists():
        return False
    fields = read_json(path)
    return "class_name" in fields and "model_type" not in fields


def is_preset(folder):
    """Whether a folder's tokenizer is one of keras-hub's, or missing from such a preset."""
    # Not tokenizer.json first: that of Hugging Face may be large.
    if not (folder / ASSETS).is_dir() and not is_preset_file(folder / "config.json"):
        return False
    missing = not any((folder / name).exists() for name in FILES)
    return missing or is_preset_file(folder / "tokenizer.json")


def read_preset_tokenizer(folder):
    """The tokenizer of a preset folder.

    What is lowercased, and what of accents, is by the preset's settings; but texts are lowercased
    as BERT does, character by character, where keras-hub folds their cases by NFKC ("ㅋㅋ" becomes
    initial consonants, "ß" "ss"), so that ids of such texts differ.

    Raises:
        InputError: if there is none, it is broken, of a class that tfnlp lacks, or has a setting
            that is not supported.
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
    try:
        return _make(name, settings, folder / ASSETS)
    except KeyError:
        known = ", ".join((*WORDPIECE, *BPE, *UNIGRAM))
        raise InputError(
            f"{path}: the class {name} is none that tfnlp reads of keras-hub; those are {known}."
        ) from None
    except FileNotFoundError as e:
        raise InputError(f"{e.filename} is missing; copy the preset again.") from None


def read_pad_token_id(folder):
    """The id that a preset's tokenizer pads with; None where there is none that tfnlp reads."""
    path, assets = folder / "tokenizer.json", folder / ASSETS
    if not is_preset_file(path):
        return None
    name = read_json(path)["class_name"]
    try:
        if name in WORDPIECE:
            return read_vocabulary(assets / "vocabulary.txt").index("[PAD]")
        if name in BPE:
            vocabulary = read_json(assets / "vocabulary.json")
            return vocabulary[SPECIAL_TOKENS[BPE[name]].tokens["pad_token"]]
        if name in UNIGRAM:
            pieces = [piece for piece, _ in read_sentencepiece(assets / "vocabulary.spm")[0]]
            return pieces.index(SPECIAL_TOKENS[UNIGRAM[name]].tokens["pad_token"])
    except (InputError, FileNotFoundError, KeyError, ValueError):
        pass  # `read_preset_tokenizer` says what is wrong
    return None


def _make(name, settings, assets):
    if name in WORDPIECE:
        return WordPieceTokenizer(
            read_vocabulary(assets / "vocabulary.txt"),
            lowercase=settings.get("lowercase", False),
            strip_accents=settings.get("strip_accents", False),
        )
    if name in BPE:
        return ByteLevelBpeTokenizer(
            read_json(assets / "vocabulary.json"),
            read_merges(assets / "merges.txt"),
            BPE[name],
            settings.get("add_prefix_space", False),
        )
    family = UNIGRAM[name]
    pieces, character_map = read_sentencepiece(assets / "vocabulary.spm")
    return UnigramTokenizer(pieces, family, False, True, character_map)
