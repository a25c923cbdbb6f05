"""Fields of settings dataclasses, with their help, bounds and choices."""

import dataclasses

from tfnlp.utils.errors import InputError, unknown_name


def setting(default, help, low=None, high=None, choices=None):
    """Return a dataclass field; `recipes.dataclass_flags` makes a flag of it.

    Args:
        default: its default.
        help: a description, the flag's help.
        low, high: the smallest and the largest value; None for no bound.
        choices: the allowed values; None for any.
    """
    bounds = {"low": low, "high": high, "choices": choices}
    return dataclasses.field(default=default, metadata={"help": help} | bounds)


def check_settings(settings):
    """Raise an InputError if a field of a dataclass is out of its bounds or not a choice.

    None passes, and so does a field that is not a `setting`.
    """
    for field in dataclasses.fields(settings):
        value, metadata = getattr(settings, field.name), field.metadata
        if value is None or not metadata:
            continue
        if metadata["choices"] and value not in metadata["choices"]:
            raise unknown_name(field.name, value, metadata["choices"])
        if metadata["low"] is not None and value < metadata["low"]:
            raise InputError(f"{field.name}={value} must be at least {metadata['low']}.")
        if metadata["high"] is not None and value > metadata["high"]:
            raise InputError(f"{field.name}={value} must be at most {metadata['high']}.")
