"""The end of texts, to evaluate on what a language model has not learned."""

from tfnlp.errors import InputError


def hold_out(texts, share=0.1):
    """Texts in two: what comes first, and the last share of their characters, from a line's start.

    Of a text without lines the end is cut off where the share begins.

    Raises:
        InputError: where one of them would be blank.
    """
    left, first, last = round(sum(map(len, texts)) * (1 - share)), [], []
    for text in texts:
        cut = min(max(left, 0), len(text))
        if 0 < cut < len(text):
            cut = text.rfind("\n", 0, cut) + 1 or cut
        first.append(text[:cut])
        last.append(text[cut:])
        left -= len(text)
    first, last = ([text for text in part if text.strip()] for part in (first, last))
    if not first or not last:
        raise InputError("`corpus` is too short to hold out a tenth of it; give more, or a `dev`.")
    return first, last
