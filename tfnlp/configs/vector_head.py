"""Settings of the vector of a text, without Keras."""

import dataclasses

from tfnlp.utils.errors import InputError, unknown_name

# How the states of a text's tokens become one vector.
POOLING_MODES = ("first", "last", "max", "mean", "mean_sqrt_length", "weighted_mean")


@dataclasses.dataclass(frozen=True)
class Projection:
    """Dense layer on a vector.

    Args:
        units: width of its output.
        activation: name of an activation of Keras, such as "tanh"; None for none.
        use_bias: whether it adds a bias.
    """

    units: int
    activation: str | None = "tanh"
    use_bias: bool = True


@dataclasses.dataclass(frozen=True)
class VectorHead:
    """Modules from the states of a text to its vector (Reimers & Gurevych 2019, section 3).

    Args:
        pooling: one or more of `POOLING_MODES`; the vectors of several are joined.
        projections: a `Projection` each, one after another.
        normalize: whether the vector gets the length 1.

    Raises:
        InputError: for no pooling or an unknown one.
    """

    pooling: tuple = ("mean",)
    projections: tuple = ()
    normalize: bool = True

    def __post_init__(self):
        if not self.pooling:
            raise InputError(f"pooling={self.pooling!r} must name one of {POOLING_MODES} or more.")
        for mode in self.pooling:
            if mode not in POOLING_MODES:
                raise unknown_name("pooling", mode, POOLING_MODES)
