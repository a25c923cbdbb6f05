"""Fields of settings dataclasses, with their help, bounds and choices; checks of numbers."""

import dataclasses
import math
import numbers
import operator

from tfnlp.utils.errors import InputError, unknown_name

BOUNDS = {
    "low": (operator.ge, "at least"),
    "high": (operator.le, "at most"),
    "above": (operator.gt, "above"),
    "below": (operator.lt, "below"),
}


def setting(default, help, choices=None, rare=False, flag=None, **bounds):
    """Return a dataclass field; `recipes.flags.dataclass_flags` makes a flag of it.

    Args:
        default: its default.
        help: a description, the flag's help.
        choices: the allowed values; None for any.
        rare: whether few need it, so that the short help leaves it out.
        flag: the name of its flag, if that is not the field's.
        bounds: `low` and `high`, the smallest and the largest value; `above` and `below`, values
            that it does not reach.
    """
    metadata = {"help": help, "choices": choices, "rare": rare, "flag": flag, **bounds}
    return dataclasses.field(default=default, metadata=metadata)


def metadata_of(config, name):
    """Return what `setting` says of a dataclass's field, or of the base class's that it overrides.

    The result is empty if there is no such `setting`.
    """
    fields = (getattr(base, "__dataclass_fields__", {}).get(name) for base in config.__mro__)
    return next((field.metadata for field in fields if field and field.metadata), {})


class Settings:
    """Base class of dataclasses of settings, whose fields are checked as one is made.

    Raises:
        InputError: if a field is not its number, in its bounds or a choice. None passes.
    """

    def __post_init__(self):
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            if value is None:
                continue
            metadata = metadata_of(type(self), name)
            if field.type in (int, int | None):
                check_whole(**{name: value})
            if field.type is float:
                check_finite(**{name: value})
            if metadata.get("choices") and value not in metadata["choices"]:
                raise unknown_name(name, value, metadata["choices"])
            for bound, (holds, words) in BOUNDS.items():
                if bound in metadata and not holds(value, metadata[bound]):
                    raise InputError(f"{name}={value} must be {words} {metadata[bound]}.")


def check_whole(**values):
    """Raise an `InputError` for a keyword argument that is not an integer."""
    for name, value in values.items():
        try:
            operator.index(value)
        except TypeError:
            raise InputError(f"{name}={value!r} must be a whole number.") from None


def check_at_least(least, **values):
    """Raise an `InputError` for a keyword argument that is not an integer of at least `least`."""
    check_whole(**values)
    for name, value in values.items():
        if value < least:
            raise InputError(f"{name}={value} must be at least {least}.")


def check_finite(**values):
    """Raise an `InputError` for a keyword argument that is not a finite number."""
    for name, value in values.items():
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise InputError(f"{name}={value!r} must be a finite number.")
