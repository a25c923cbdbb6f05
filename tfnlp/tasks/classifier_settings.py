"""Settings of classifiers, without Keras: their loss, and how probabilities become answers."""

import dataclasses

from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class ClassLoss(Settings):
    """Loss of a classifier, of one label a text or of several.

    Args:
        class_weights: the weight of each class's examples; of several labels a text, that of each
            label where it applies (`pos_weight` of PyTorch's `BCEWithLogitsLoss`). None for 1.
        focal_gamma: gamma of the focal loss (Lin et al. 2017, eq. 4); 0 for the cross-entropy.

    Raises:
        InputError: if a number is out of its range.
    """

    class_weights: tuple[float, ...] | None = None
    focal_gamma: float = setting(
        0.0,
        "Gamma of the focal loss, which counts what is right already less (Lin et al. 2017; 2 "
        "there); 0: cross-entropy.",
        low=0,
    )


@dataclasses.dataclass(frozen=True)
class Decision(Settings):
    """Settings by which the probabilities of one label a text become answers.

    Args:
        calibrated: whether the trained model's logits are divided by a temperature of the least
            cross-entropy on dev (Guo et al. 2017, section 4.2), which changes no order.
        threshold: the probability of the most probable class below which the answer is
            `none_label`.
        selective_accuracy: the least accuracy of the texts that are answered on dev, for which the
            `threshold` is chosen; None for no choice.
        none_label: the answer where none of the classes is probable enough.

    Raises:
        InputError: if a number is out of its range, or both a threshold and what it is chosen for
            are given.
    """

    calibrated: bool = setting(
        False,
        "Divide the best epoch's logits by the temperature that fits `dev`; their order stays.",
        rare=True,
        flag="calibrate",
    )
    threshold: float = setting(0.0, "Least probability of an answer.", low=0, high=1)
    selective_accuracy: float | None = setting(
        None,
        "Choose `threshold` on `dev`, the lowest at which this share of the answered texts is "
        "right.",
        above=0,
        high=1,
    )
    none_label: str = setting("none of these", "The answer below `threshold`.", rare=True)

    def __post_init__(self):
        super().__post_init__()
        if self.threshold and self.selective_accuracy is not None:
            raise InputError(
                f"selective_accuracy={self.selective_accuracy} chooses the threshold; leave "
                f"threshold={self.threshold} out, or it."
            )

    @property
    def rejects(self):
        """True if a text may get `none_label`."""
        return self.threshold > 0 or self.selective_accuracy is not None

    @classmethod
    def from_settings(cls, settings):
        """Return the decision that the settings of a model's folder or file keep."""
        names = {"threshold", "none_label"} & settings.keys()
        return cls(**{name: settings[name] for name in names})


def changed(settings):
    """Return {name: value} of the fields of a dataclass that have not their defaults."""
    values = {field.name: field.default for field in dataclasses.fields(settings)}
    return {k: v for k, v in vars(settings).items() if v != values[k]}
