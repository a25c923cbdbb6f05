"""A tokenizer's files in a checkpoint folder, which may hold a model, or another tokenizer."""

import pathlib

from tfnlp.errors import InputError
from tfnlp.files import read_json, replaced_when_whole, write_text

# What tokenizers of any kind are read from, by us or by `transformers`.
FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "spm.model", "tokenizer.model"),
    *("source.spm", "target.spm", "target_vocab.json"),
)
# Families of models that go with any tokenizer; of the last two tfnlp lacks their own kind.
ANY_TOKENIZER = (
    *("marian", "pegasus", "recurrent", "recurrent_translator"),
    *("transfo-xl", "openai-gpt"),
)


def read_family(folder):
    """The family that the folder's config.json names, or None without one."""
    path = pathlib.Path(folder) / "config.json"
    return read_json(path).get("model_type") if path.exists() else None


def read_settings(folder):
    """The fields of the folder's tokenizer_config.json; none without one."""
    path = pathlib.Path(folder) / "tokenizer_config.json"
    return read_json(path) if path.exists() else {}


def check_family(folder, family, tokenizer):
    """Raises an `InputError` where the model in a folder takes another family's tokenizer.

    WordPiece goes with any: Korean models of many families have it. Models of `ANY_TOKENIZER` take
    any.
    """
    check_families(folder, family, getattr(tokenizer, "family", None))


def check_families(folder, family, own):
    """As `check_family`; `own` is the tokenizer's family, None where it goes with any."""
    if None not in (family, own) and family not in (own, *ANY_TOKENIZER):
        raise InputError(
            f"{folder}: the model is of the family {family!r} and the tokenizer one for {own!r}; "
            f"write it into another folder, or make one for {family!r}."
        )


def write_tokenizer(folder, tokenizer, files):
    """Writes a tokenizer's files, and removes those of a tokenizer that was there before.

    Args:
        folder: created if need be; what belongs to no tokenizer is left alone.
        tokenizer: whose files they are.
        files: {name: text or bytes}.

    Raises:
        InputError: if a file cannot be written, or the folder's model is of another family.
    """
    folder = pathlib.Path(folder)
    check_family(folder, read_family(folder), tokenizer)
    for name, content in files.items():
        if isinstance(content, bytes):
            with replaced_when_whole(folder / name) as temporary:
                pathlib.Path(temporary).write_bytes(content)
        else:
            write_text(folder / name, content)
    for name in set(FILES) - set(files):
        (folder / name).unlink(missing_ok=True)
