"""Tokens that a folder adds to the vocabulary of its tokenizer, such as markers of entities."""

import tokenizers

from tfnlp.text.tokenizers.tokenizer_files import read_settings
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

# Special tokens that no text holds.
NOT_IN_TEXTS = {"<eop>", "<eod>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
# The list of special tokens without a role, in `transformers` 5 and before.
WITHOUT_ROLE = ("extra_special_tokens", "additional_special_tokens")


def add_tokens_of(folder, tokenizer):
    """Add the tokens of a folder's files to its tokenizer, with their ids.

    Special tokens that the tokenizer has of its family, and finds in texts, take the flags of the
    files, such as whether the mask absorbs the space before it.

    Raises:
        InputError: if the files are broken, or an id is not the tokenizer's.
    """
    family_tokens = {*NOT_IN_TEXTS, *tokenizer.special_tokens.tokens.values()}
    rows = read_added_tokens(folder)
    # Those without an id follow the others.
    for path, token, i in sorted(rows, key=lambda row: (row[2] is None, row[2] or 0)):
        if token.content not in family_tokens:
            tokenizer.add_token(token)
        else:
            tokenizer.replace_flags(token)
        known = tokenizer.token_id(token.content)
        if None not in (i, known) and i != known:
            raise InputError(
                f"{path} gives {token.content!r} the id {i}, and the vocabulary {known}; give "
                "files of one tokenizer."
            )


def read_added_tokens(folder):
    """Return (path of the file, `tokenizers.AddedToken`, id or None) of each added token.

    As in `transformers`, of several entries for a token that of `added_tokens_decoder` counts,
    then that of tokenizer.json, then that of the files of earlier versions.

    Raises:
        InputError: if a file is broken.
    """
    added = {}
    try:
        for file, entry, i in _entries(folder):
            token, i = _added_token(entry, i)
            added.setdefault(token.content, (folder / file, token, i))
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        if isinstance(e, InputError):
            raise
        raise InputError(
            f"{folder}: its added tokens cannot be read ({e}); copy the tokenizer's files again."
        ) from None
    return list(added.values())


def _entries(folder):
    """Yield (file name, entry of a token, id or None), those that count first."""
    config, old = "tokenizer_config.json", "added_tokens.json"
    settings, content = read_settings(folder), _read(folder, "tokenizer.json")
    for i, entry in (settings.get("added_tokens_decoder") or {}).items():
        yield config, entry, i
    for entry in _list(content.get("added_tokens")):
        yield "tokenizer.json", entry, entry["id"]
    roles = settings | _read(folder, "special_tokens_map.json")
    special = next((roles[name] for name in WITHOUT_ROLE if roles.get(name)), [])
    special = [*special.values()] if isinstance(special, dict) else _list(special)
    names = {entry["content"] if isinstance(entry, dict) else entry for entry in special}
    for token, i in _read(folder, old).items():
        yield old, {"content": token, "special": token in names}, i
    for entry in special:
        yield config, entry, None


def _list(value):
    if not isinstance(value or [], list):
        raise TypeError(f"{value!r} is no list")
    return value or []


def _added_token(entry, i):
    """Return an entry of a file as an `AddedToken`, and its id or None."""
    entry = {"content": entry, "special": True} if isinstance(entry, str) else entry
    if not entry["content"]:
        raise ValueError("a token is empty")
    if i is not None and (isinstance(i, bool) or not str(i).isdecimal()):
        raise ValueError(f"{i!r} is no id")
    flags = {name: value for name, value in entry.items() if name not in ("id", "__type")}
    token = tokenizers.AddedToken(**{"normalized": not entry.get("special")} | flags)
    return token, None if i is None else int(i)


def _read(folder, name):
    return read_json(folder / name) if (folder / name).exists() else {}
