"""The one error type for bad input: a file, a line, an argument or a tensor of no use."""


class InputError(ValueError):
    """Input that the user can mend.

    Its message is one sentence that names the file, line, column, argument or tensor, says
    what was expected, and what to do. Recipes print it without a traceback, arguments as the flags
    that they are there, and exit with status 2.
    """
