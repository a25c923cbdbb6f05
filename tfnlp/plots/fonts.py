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
    missing = [warning for warning in caught if "missing from font" in str(warning.message)]
    for warning in caught:
        if warning not in missing:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if missing:
        logging.warning(
            "%s shows boxes for %d characters that no installed font has; install one, such as "
            "Noto Sans CJK, and plot it again.",
            path,
            len({str(warning.message) for warning in missing}),
        )
