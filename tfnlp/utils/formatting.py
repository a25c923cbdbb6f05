"""Numbers with their nouns, such as "2,000 documents"."""


def counted(number, thing, things=None):
    """Return a number with its noun, such as "1 document" or "2,000 documents".

    Args:
        number: the number.
        thing: the singular.
        things: the plural; `thing` with an s where None.
    """
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"
