"""Tokens that a folder adds to the vocabulary of its tokenizer, such as markers of entities."""

import tokenizers

from tfnlp.text.tokenizer_files import read_settings
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

# Special tokens that no text holds.
NOT_IN_TEXTS = {"<eop>", "<eod>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
# The list of special tokens without a role, in `transformers` 5 and before.
WITHOUT_ROLE = ("extra_special_tokens", "additional_special_tokens")


def add_tokens_of(folder, tokenizer):
    """Add the tokens of a folder's files to its tokenizer, with their ids.

    Special tokens that the tokenizer has of its family stay as they are.

    Raises:
        InputError: if the files are broken, or an id is not the tokenizer's.
    """
    family_tokens = {*NOT_IN_TEXTS, *tokenizer.special_tokens.tokens.values()}
    rows = read_added_tokens(folder)
    # Those without an id follow the others.
    for path, token, i in sorted(rows, key=lambda row: (row[2] is None, row[2] or 0)):
        if token.content not in family_tokens:
            tokenizer.add_token(token)
        known = tokenizer.token_id(token.content)
        if None not in (i, known) and i != known:
            raise InputError(
                f"{path} gives {token.content!r} the id {i}, and the vocabulary {known}; give "
                "files of one tokenizer."
            )


def read_added_tokens(folder):
    """Return (path of the file, `tokenizers.AddedToken`, id or None) of each added token.

    As in `transformers`, of several entries for a token that of tokenizer.json counts, then that
    of `added_tokens_decoder`, then that of the files of earlier versions.
    """
    config, old = "tokenizer_config.json", "added_tokens.json"
    settings, content = read_settings(folder), _read(folder, "tokenizer.json")
    roles = settings | _read(folder, "special_tokens_map.json")
    special = next((roles[name] for name in WITHOUT_ROLE if roles.get(name)), [])
    special = [*special.values()] if isinstance(special, dict) else special
    names = {entry["content"] if isinstance(entry, dict) else entry for entry in special}
    rows = [("tokenizer.json", entry, None) for entry in content.get("added_tokens") or []]
    decoder = settings.get("added_tokens_decoder") or {}
    rows += [(config, entry, i) for i, entry in decoder.items()]
    for token, i in _read(folder, old).items():
        rows.append((old, {"content": token, "special": token in names}, i))
    rows += [(config, entry, None) for entry in special]
    added = {}
    for file, entry, i in rows:
        token, i = _added_token(folder / file, entry, i)
        added.setdefault(token.content, (folder / file, token, i))
    return list(added.values())


def _added_token(path, entry, i):
    """Return an entry of a file as an `AddedToken`, and its id or None."""
    entry = {"content": entry, "special": True} if isinstance(entry, str) else entry
    try:
        flags = {"normalized": not entry.get("special")} | entry
        flags, i = (
            {k: v for k, v in flags.items() if k not in ("id", "__type")},
            entry.get("id", i),
        )
        return tokenizers.AddedToken(**flags), None if i is None else int(i)
    except (AttributeError, TypeError, ValueError) as e:
        raise InputError(
            f"{path} has an added token that cannot be read: {entry} ({e})."
        ) from None


def _read(folder, name):
    return read_json(folder / name) if (folder / name).exists() else {}
