"""Tokenizer files of checkpoint folders, which may hold a model or another tokenizer."""

import pathlib

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, read_json, write_text

# The files from which tfnlp or `transformers` loads tokenizers.
FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "spm.model", "tokenizer.model"),
    *("source.spm", "target.spm", "target_vocab.json"),
)
# Families that work with any tokenizer; tfnlp lacks the original kind of the last two.
ANY_TOKENIZER = (
    *("marian", "pegasus", "recurrent", "recurrent_translator"),
    *("transfo-xl", "openai-gpt"),
)


def read_family(folder):
    """Return the family in the folder's config.json, or None without that file."""
    path = pathlib.Path(folder) / "config.json"
    return read_json(path).get("model_type") if path.exists() else None


def read_settings(folder):
    """Read the folder's tokenizer_config.json; an empty dict without that file."""
    path = pathlib.Path(folder) / "tokenizer_config.json"
    return read_json(path) if path.exists() else {}


def check_tokenizer_family(folder, family, tokenizer_family):
    """Raise an `InputError` if the model in a folder needs another family's tokenizer.

    The `tokenizer_family` of WordPiece is None: it works with any family, as Korean models of many
    families use it. Families in `ANY_TOKENIZER` take any tokenizer.
    """
    if None not in (family, tokenizer_family) and family not in (tokenizer_family, *ANY_TOKENIZER):
        raise InputError(
            f"{folder}: the model is of the family {family!r} and the tokenizer one for "
            f"{tokenizer_family!r}; write it into another folder, or make one for {family!r}."
        )


def write_tokenizer(folder, tokenizer, files):
    """Write the files of a tokenizer, and remove those of an earlier one.

    Args:
        folder: the folder, created if needed; other files in it are left alone.
        tokenizer: the tokenizer of the files.
        files: {name: text or bytes}.

    Raises:
        InputError: if a file cannot be written, or the folder's model is of another family.
    """
    folder = pathlib.Path(folder)
    check_tokenizer_family(folder, read_family(folder), getattr(tokenizer, "family", None))
    for name, content in files.items():
        if isinstance(content, bytes):
            with atomic_replace(folder / name) as temporary:
                pathlib.Path(temporary).write_bytes(content)
        else:
            write_text(folder / name, content)
    for name in set(FILES) - set(files):
        (folder / name).unlink(missing_ok=True)
