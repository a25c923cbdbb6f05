"""Settings of vectors of graphs, without TensorFlow."""

import dataclasses
from typing import ClassVar

from tfnlp.utils.settings import Settings, setting


def loss_setting(default):
    """Return the field of the loss."""
    help = "Margin between a triple and its corruptions, or negative sampling weighted by score."
    return setting(default, help, choices=("margin", "self_adversarial"))


@dataclasses.dataclass(frozen=True)
class GraphVectorSettings(Settings):
    """Settings of every method."""

    dim: int = setting(100, "Width of the vectors; of complex numbers in rotate.", low=1)
    loss: str = loss_setting("margin")
    margin: float = setting(1.0, "Margin, gamma.", low=0)
    temperature: float = setting(1.0, "Factor of scores in the weights, alpha.", low=0)
    negatives: int = setting(16, "Corruptions of each triple.", low=1)
    epochs: int = setting(100, "Passes over the triples.", low=1)
    batch_triples: int = setting(1024, "Triples in a step.", low=1)
    learning_rate: float = setting(0.01, "Learning rate of Adam.", above=0)
    seed: int = setting(0, "Seed of all draws.", low=0)


@dataclasses.dataclass(frozen=True)
class TransESettings(GraphVectorSettings):
    """Settings of TransE (Bordes et al. 2013)."""

    method: ClassVar[str] = "transe"
    norm: int = setting(1, "Norm of the distance: 1 or 2.", low=1, high=2)


@dataclasses.dataclass(frozen=True)
class DistMultSettings(GraphVectorSettings):
    """Settings of DistMult (Yang et al. 2015)."""

    method: ClassVar[str] = "distmult"
    relation_penalty: float = setting(1e-4, "Factor of the squared relation vectors.", low=0)


@dataclasses.dataclass(frozen=True)
class RotatESettings(GraphVectorSettings):
    """Settings of RotatE (Sun et al. 2019)."""

    method: ClassVar[str] = "rotate"
    loss: str = loss_setting("self_adversarial")
    margin: float = setting(6.0, "Margin, gamma.", low=0)


METHODS = {kind.method: kind for kind in (TransESettings, DistMultSettings, RotatESettings)}
