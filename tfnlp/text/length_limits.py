"""Policies for texts that are too long for a model."""

from absl import logging

from tfnlp.utils.errors import unknown_name

# Each policy, and the fate of a text that is too long: it is refused, loses its end, or is left
# out.
TOO_LONG = {"error": "refused", "cut": "cut", "skip": "skipped"}


def check_too_long(too_long):
    """Raise an `InputError` for a value that is not in `TOO_LONG`."""
    if too_long not in TOO_LONG:
        raise unknown_name("too_long", too_long, TOO_LONG)


def warn_of_long(is_long, kind, name, limit, too_long):
    """Log the number of texts that are too long, and the first of them; nothing if none is.

    Args:
        is_long: (n,) bool.
        kind: a plural noun for the texts.
        name: a function from a text's index to its name.
        limit: the limit that they exceed, a string.
        too_long: the policy, "cut" or "skip".
    """
    if is_long.any():
        first, count = name(int(is_long.argmax())), f"{is_long.sum()} of {len(is_long)}"
        logging.warning(
            f"{count} {kind} are longer than {limit}, {first} the first; "
            f"they were {TOO_LONG[too_long]}."
        )
