"""Tokenizers of keras-hub's preset folders, read without keras-hub.

`tokenizer.save_to_preset` writes tokenizer.json, which names a class, and the vocabulary under
assets/tokenizer/.
"""

from tfnlp.errors import InputError
from tfnlp.files import read_json
from tfnlp.text.byte_level_bpe import ByteLevelBpeTokenizer, read_merges
from tfnlp.text.tokenizer_files import FILES
from tfnlp.text.unigram import UnigramTokenizer, read_sentencepiece
from tfnlp.text.wordpiece import WordPieceTokenizer, read_vocabulary

ASSETS = "assets/tokenizer"
ASSET_NAMES = ("vocabulary.txt", "vocabulary.json", "merges.txt", "vocabulary.spm")
WORDPIECE = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
BPE = {"RobertaTokenizer": "roberta", "GPT2Tokenizer": "gpt2"}
UNIGRAM = {"AlbertTokenizer": "albert", "DebertaV3Tokenizer": "deberta-v2"}


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

    Texts are normalised as keras-hub does, by its settings and not by what released models have.

    Raises:
        InputError: if there is none, it is broken, or of a class that tfnlp lacks.
    """
    path = folder / "tokenizer.json"
    if not path.exists():
        raise InputError(
            f"{folder} is a preset of keras-hub without a tokenizer; write it too, by "
            "tokenizer.save_to_preset(folder)."
        )
    fields = read_json(path)
    name, settings = fields.get("class_name"), fields.get("config") or {}
    try:
        return _make(name, settings, folder / ASSETS)
    except KeyError:
        known = ", ".join((*WORDPIECE, *BPE, *UNIGRAM))
        raise InputError(
            f"{path}: the class {name} is none that tfnlp reads of keras-hub; those are {known}."
        ) from None
    except FileNotFoundError as e:
        raise InputError(f"{e.filename} is missing; copy the preset again.") from None


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
