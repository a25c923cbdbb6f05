"""Installed fonts for texts of any script."""

import warnings

from absl import logging

# Fonts with Hangul, and most of them with Chinese and Japanese characters, by system.
KOREAN = (
    *("Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "NanumBarunGothic", "UnDotum"),
    *("Malgun Gothic", "Apple SD Gothic Neo", "AppleGothic", "Arial Unicode MS", "Unifont"),
)


def font_families(first):
    """Return the names of fonts in order of lookup: `first`, then the installed ones."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [first, *(name for name in KOREAN if name in installed)]


def save_figure(figure, path):
    """Write a figure with text as a PNG; warn in one line if a font lacks characters."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(path, dpi=120)
    missing = [one for one in caught if "missing from font" in str(one.message)]
    for one in caught:
        if one not in missing:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if missing:
        logging.warning(
            "%s has boxes for %d characters that no font here has; install one for them, such as "
            "Noto Sans CJK, and draw it again.",
            path,
            len({str(one.message) for one in missing}),
        )
