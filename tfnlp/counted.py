"""Numbers of things, in words."""


def counted(number, thing, things=None):
    """Such as "1 document" or "2,000 documents"; `things` where an s does not make them many."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"
