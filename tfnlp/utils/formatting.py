"""Numbers with their nouns, such as "2,000 documents", names of figures, and plain tables."""

_BREAKS = str.maketrans(dict.fromkeys("\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029", " "))


def figure_name(split, figure):
    """Return what a figure of a split is called: "dev_accuracy", "dev_NAME/accuracy".

    Names of further dev sets have no slash, so that none of their figures has another's name.
    """
    return f"{split}/{figure}" if "_" in split else f"{split}_{figure}"


def counted(number, thing, things=None):
    """Return a number with its noun, such as "1 document" or "2,000 documents".

    Args:
        number: the number.
        thing: the singular.
        things: the plural; `thing` with an s where None.
    """
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def one_line(text):
    """Return a text with a space in place of each tab and line break: its offsets stay."""
    return text.translate(_BREAKS)


def aligned(rows, justify=str.ljust):
    """Return the lines of a table whose columns are aligned, by `str.ljust` or `str.rjust`.

    Args:
        rows: a list of lists of strings, the header first.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(justify, row, widths)).rstrip() for row in rows]
