"""Tokenizer files of checkpoint folders, which may hold a model or another tokenizer."""

import pathlib

from tfnlp.families import MODEL_TYPES
from tfnlp.text.reading.lines import check_file
from tfnlp.text.reading.readers import read_json_data
from tfnlp.text.tokenizers.special_tokens import CLASSES, SPECIAL_TOKENS
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import as_json, atomic_replace, read_json, write_text

# The files from which tfnlp or `transformers` loads tokenizers.
FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "spm.model", "tokenizer.model"),
    *("sentencepiece.bpe.model", "source.spm", "target.spm", "target_vocab.json"),
)
# Classes, without "Fast", of tokenizers that their tokenizer.json alone describes.
BY_FILE = ("PreTrainedTokenizer", "TokenizersBackend")
# The names in config.json of families that work with any tokenizer.
ANY_TOKENIZER = tuple(name for name, family in MODEL_TYPES.items() if family.any_tokenizer)
# Families whose tokenizers give what no other body reads: a third segment, characters.
OF_ONE_FAMILY = ("xlnet", "elmo")


def read_family(folder):
    """Return the family in the folder's config.json, or None without that file."""
    path = pathlib.Path(folder) / "config.json"
    return read_json(path).get("model_type") if path.exists() else None


def foreign_static(folder):
    """Return where the files of static vectors of model2vec or sentence-transformers lie.

    That is the folder of the module StaticEmbedding, or the given one; None for other models, and
    for static vectors with a config.json of tfnlp.
    """
    folder, family = pathlib.Path(folder), read_family(folder)
    if family == "static":
        return None
    path = folder / "modules.json"
    entries = read_json_data(path) if path.exists() else None
    first = entries[0] if isinstance(entries, list) and entries else {}
    if isinstance(first, dict) and str(first.get("type")).endswith(".StaticEmbedding"):
        return folder / str(first.get("path"))
    return folder if family == "model2vec" else None


def read_settings(folder):
    """Read the folder's tokenizer_config.json; an empty dict without that file."""
    path = pathlib.Path(folder) / "tokenizer_config.json"
    return read_json(path) if path.exists() else {}


def named_class(folder):
    """Return the tokenizer class that a folder names, without "Fast", and the file; None for none.

    That is tokenizer_config.json, or config.json.
    """
    path, name = folder / "tokenizer_config.json", read_settings(folder).get("tokenizer_class")
    if name is None and (folder / "config.json").exists():
        path = folder / "config.json"
        name = read_json(path).get("tokenizer_class")
    # Older versions of `transformers` add "Fast" to some class names.
    return name and str(name).removesuffix("Fast"), path


def is_by_file(folder, family):
    """Return whether a folder's tokenizer.json says how texts are read, as in `transformers`.

    Otherwise the class that the folder names does, or that of the family of its model.

    Args:
        folder: the folder.
        family: that of the tokenizer.
    """
    name, _ = named_class(folder)
    if name in CLASSES or not (folder / "tokenizer.json").exists():
        return False
    model_type, tokenizer = read_family(folder), SPECIAL_TOKENS[family].tokenizer_class
    of_model = getattr(MODEL_TYPES.get(model_type), "tokenizer", None)
    reads = model_type == family or (family == "bert" and of_model == "wordpiece")
    return name in BY_FILE or not reads or tokenizer.removesuffix("Fast") in BY_FILE


def read_engine(folder, kind):
    """Read the folder's tokenizer.json, whose model must be of a kind of `tokenizers`."""
    content = read_json(folder / "tokenizer.json")
    if engine_kind(content) != kind:
        raise InputError(
            f"{folder / 'tokenizer.json'} holds a model of the kind {engine_kind(content)}, but "
            f"the folder's tokenizer is of the kind {kind}; give the files of one tokenizer."
        )
    return content


def engine_kind(content):
    """Return the kind of model in the content of a tokenizer.json; None without a vocabulary."""
    model = content.get("model") or {}
    if "vocab" not in model:
        return None
    # Early files have no type.
    pieces = "Unigram" if isinstance(model["vocab"], list) else "WordPiece"
    return model.get("type") or ("BPE" if "merges" in model else pieces)


def read_token_lines(path):
    """Return the lines of a tokenizer's text file, without the last one if it is empty.

    Raises:
        InputError: if the file is missing or not UTF-8.
    """
    check_file(path)
    try:
        # Not splitlines(): a token may be a Unicode line separator.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8 text (byte {e.start}); save it as UTF-8.") from None
    return lines if lines[-1] else lines[:-1]


def check_tokenizer_family(folder, family, tokenizer_family):
    """Raise an `InputError` if the model in a folder cannot read a family's tokenizer.

    A body takes the tokenizer of any family but those of `OF_ONE_FAMILY`.
    """
    takes = (None, tokenizer_family, *ANY_TOKENIZER)
    if tokenizer_family in OF_ONE_FAMILY and family not in takes:
        raise InputError(
            f"{folder}: the model is of the family {family!r} and the tokenizer one for "
            f"{tokenizer_family!r}, whose encodings it cannot read; give another tokenizer."
        )


def save_tokenizer(tokenizer, folder):
    """Write a tokenizer's files and tokenizer_config.json, as `transformers` does.

    Files of another tokenizer in the folder are removed; others are left alone.

    Args:
        tokenizer: the tokenizer.
        folder: the folder, created if needed.

    Raises:
        InputError: if a file cannot be written, or the folder's model cannot read the tokenizer.
    """
    folder = pathlib.Path(folder)
    check_tokenizer_family(folder, read_family(folder), tokenizer.family)
    files = {"tokenizer_config.json": as_json(tokenizer.settings()), **tokenizer.files()}
    for name, content in files.items():
        if isinstance(content, bytes):
            with atomic_replace(folder / name) as temporary:
                pathlib.Path(temporary).write_bytes(content)
        else:
            write_text(folder / name, content)
    for name in set(FILES) - set(files):
        (folder / name).unlink(missing_ok=True)
