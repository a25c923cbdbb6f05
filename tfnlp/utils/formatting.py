"""Numbers with their nouns, such as "2,000 documents"."""


def counted(number, thing, things=None):
    """Return a number with its noun, such as "1 document" or "2,000 documents".

    Args:
        number: the number.
        thing: the singular.
        things: the plural; `thing` with an s where None.
    """
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def aligned(rows):
    """Return rows of strings as lines, with columns aligned at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.rjust, row, widths)) for row in rows]
