"""Errors for bad input: a file, a line, an argument or a tensor."""

import contextlib
import difflib


class InputError(ValueError):
    """Error in the user's input.

    The message is one sentence. It names the file, line, column, argument or tensor, and says what
    was expected and what to do. Recipes print it without a traceback, with arguments written as
    flags, and exit with status 2.
    """


class ColumnError(InputError):
    """Missing column, or missing field, of a file; its name is in `column`."""

    def __init__(self, message, column):
        super().__init__(message)
        self.column = column

    def __reduce__(self):  # by default an exception is unpickled from its message alone
        return type(self), (str(self), self.column)


@contextlib.contextmanager
def needs_packages(purpose, packages):
    """Name the packages to install where the body cannot import one.

    They are named as pip knows them: PyPI's package `tfnlp` is not this one, nor are its extras.

    Raises:
        InputError: if the body raises a ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as e:  # other ImportErrors are of a package that is there
        raise InputError(f"{purpose} needs {e.name}: pip install {packages}.") from None


def unknown_name(argument, name, names):
    """Return the InputError for an argument whose value `name` is not in `names`.

    The message suggests similar spellings first, then lists all names.
    """
    hint = spelt_alike(str(name).lower(), names)
    advice = f"use one of {', '.join(names)}" if names else "there are none, so leave it out"
    return InputError(f"{argument}={name} is unknown{hint}; {advice}.")


def spelt_alike(name, names):
    """Return the hint of an error with the `names` spelt like `name`; "" if there are none."""
    alike = difflib.get_close_matches(name, names)
    return f" (did you mean {' or '.join(alike)}?)" if alike else ""
