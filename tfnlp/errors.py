"""The one error type for bad input: a file, a line, an argument or a tensor of no use."""

import difflib


class InputError(ValueError):
    """Input that the user can mend.

    Its message is one sentence that names the file, line, column, argument or tensor, says
    what was expected, and what to do. Recipes print it without a traceback, arguments as the flags
    that they are there, and exit with status 2.
    """


class ColumnError(InputError):
    """A file lacks a column, `column`, or the field of that name."""

    def __init__(self, message, column):
        super().__init__(message)
        self.column = column


def unknown_name(argument, name, names):
    """Return the InputError of an argument whose value `name` is none of `names`.

    It says those that are spelt alike first, then all.
    """
    hint = spelt_alike(str(name).lower(), names)
    return InputError(f"{argument}={name} is unknown{hint}; use one of {', '.join(names)}.")


def spelt_alike(name, names):
    """Return the part of an error that says which `names` are spelt like `name`; "" for none."""
    alike = difflib.get_close_matches(name, names)
    return f" (did you mean {' or '.join(alike)}?)" if alike else ""
