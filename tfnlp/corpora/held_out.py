"""Held-out text for the evaluation of language models."""

from tfnlp.utils.errors import InputError


def hold_out(texts, share=0.1):
    """Split texts into a first part and the last `share` of their characters.

    The split is at the start of a line. In a text without lines it is exactly at the share.

    Raises:
        InputError: if either part would be blank.
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
