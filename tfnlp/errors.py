"""The one error type for bad input: a file, a line, a flag or a tensor that cannot be used."""


class InputError(ValueError):
    """Input that the user can mend.

    Its message is one sentence that names the file, line, column, flag or tensor, says what
    was expected, and what to do. Recipes print it without a traceback and exit with status 2.
    """
