"""Parts of labelled texts: folds for cross-validation, and some texts of each label."""

import dataclasses
import re
import warnings

import numpy as np

from tfnlp.utils.errors import InputError

PER_TEXT = ("texts", "pairs", "labels", "probabilities")


def split_fold(examples, fold):
    """Return the examples without one of their folds, and that fold.

    Folds have like shares of each label, or set of labels, and are the same each time
    (scikit-learn's `StratifiedKFold`, shuffled).

    Args:
        examples: `Examples` with labels.
        fold: "2/5" for the second of 5.

    Raises:
        InputError: for another text, and more folds than any label has texts.
    """
    from sklearn.model_selection import StratifiedKFold  # takes a second

    match = re.fullmatch(r"(\d+)/(\d+)", fold)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count or count < 2:
        raise InputError(f"fold={fold} must be a fold and their number, 2 or more, such as 1/5.")
    _, strata = np.unique([str(label) for label in examples.labels], return_inverse=True)
    most = np.bincount(strata).max()
    if most < count:
        raise InputError(f"fold={fold} needs a label of {count} texts; the most are {most}.")
    folds = StratifiedKFold(count, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # is in some folds alone
        train, dev = list(folds.split(strata, strata))[number - 1]
    return _select(examples, train), _select(examples, dev)


def draw_shots(examples, shots, seed=0):
    """Return `Examples` of as many texts of each label, in the order of the file.

    Args:
        examples: `Examples` with labels.
        shots: texts a label.
        seed: of the draw.

    Raises:
        InputError: for a label with fewer texts.
    """
    rng, labels, places = np.random.default_rng(seed), np.asarray(examples.labels), []
    for i, name in enumerate(examples.label_names):
        of_label = np.flatnonzero(labels == i)
        if len(of_label) < shots:
            raise InputError(
                f"shots={shots} is more than the {len(of_label)} texts with the label {name!r}; "
                "give fewer, or more texts."
            )
        places.extend(rng.choice(of_label, shots, replace=False))
    return _select(examples, sorted(places))


def _select(examples, places):
    values = {name: getattr(examples, name, None) for name in PER_TEXT}
    chosen = {
        name: value[places] if isinstance(value, np.ndarray) else [value[i] for i in places]
        for name, value in values.items()
        if value is not None
    }
    return dataclasses.replace(examples, **chosen)
