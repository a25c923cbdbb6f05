"""Settings of weight pruning, clustering and quantisation, without Keras."""

import dataclasses
import re

from distill import compression
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting

# Default number of prunings between the first step and the last.
PRUNINGS = 20


@dataclasses.dataclass(frozen=True)
class PruningConfig(Settings):
    """Settings for pruning the dense kernels of a model's blocks in training.

    Zhu & Gupta 2017, 'To prune, or not to prune', eq. 1: the share of zeros rises from 0 at
    `begin_step` to `sparsity` at `end_step`, fast at first.

    Args:
        sparsity, pattern, begin_step, end_step: as in the help of their fields. A "2:4" is pruned
            in one step; blocks by their mean magnitude.
        frequency: steps between prunings; a 20th of the interval where None.
    """

    sparsity: float = setting(
        0.5,
        "Share of zeros in the blocks' kernels at the end; none if not given.",
        low=0.01,
        high=0.99,
    )
    pattern: str = setting(
        "magnitude",
        "Weights to prune: magnitude (the smallest; if not given), 2:4 (2 of each 4 inputs), or "
        "blocks of inputs by outputs, such as 4x1.",
        rare=True,
        flag="sparsity_pattern",
    )
    begin_step: int = setting(
        0,
        "Step after which pruning begins; 0 if not given.",
        low=0,
        rare=True,
        flag="sparsity_begin_step",
    )
    end_step: int | None = setting(
        None,
        "Step of the last pruning; half of all steps if not given.",
        low=1,
        rare=True,
        flag="sparsity_end_step",
    )
    frequency: int | None = None

    def __post_init__(self):
        super().__post_init__()
        wrong_share = self.pattern == "2:4" and self.sparsity != 0.5
        if wrong_share or not re.fullmatch(r"magnitude|2:4|[1-9]\d*x[1-9]\d*", self.pattern):
            raise InputError(
                f"pattern={self.pattern!r} with sparsity={self.sparsity} must be magnitude, 2:4 "
                "with 0.5, or a block of inputs by outputs such as 4x1."
            )

    @property
    def block_size(self):
        """Shape (H, W) of a block."""
        return tuple(map(int, self.pattern.split("x"))) if "x" in self.pattern else (1, 1)

    def steps(self, total_steps):
        """Return the first and the last pruning step, and the steps between two, in `total_steps`.

        Raises:
            InputError: if they do not fit into `total_steps`.
        """
        end = total_steps // 2 if self.end_step is None else self.end_step
        if not 0 <= self.begin_step < end <= total_steps:
            raise InputError(
                f"begin_step={self.begin_step} and end_step={end} must follow each other within "
                f"the {total_steps} steps of the training; prune earlier, or train longer."
            )
        frequency = self.frequency or max((end - self.begin_step) // PRUNINGS, 1)
        # Prunings come every `frequency` steps, so the last one is a multiple.
        prunings = max((end - self.begin_step) // frequency, 1)
        frequency = min(frequency, end - self.begin_step)
        return self.begin_step, self.begin_step + prunings * frequency, frequency

    def pruner(self, model, total_steps):
        """Return the `Pruner` of a model that trains for `total_steps`."""
        return compression.Pruner(model, self, total_steps)


@dataclasses.dataclass(frozen=True)
class ClusteringConfig(Settings):
    """Settings for clustering the dense kernels of a model's blocks."""

    clusters: int = setting(
        16,
        "Distinct values in each kernel of the blocks, for a file that compresses well; no "
        "clustering if not given.",
        low=2,
        high=256,
    )

    def clusterer(self, model, total_steps):
        """Return the `Clusterer` of a model in training."""
        return compression.Clusterer(model, self)


@dataclasses.dataclass(frozen=True)
class Quantization:
    """Settings for quantising a file.

    Args:
        weight_bits: of the weights of dense layers and embedding tables; 32 is float32.
        block_size: number of weights that share a scale; a whole channel or row where None.
        static: whether activations are 8-bit integers of calibrated ranges, rather than quantised
            at run time.
    """

    weight_bits: int
    block_size: int | None = None
    static: bool = False


QUANTIZATIONS = {
    "float32": Quantization(32),
    "float16": Quantization(16),
    "int8": Quantization(8),
    "static_int8": Quantization(8, static=True),
    "int4": Quantization(4),
    "int4_block32": Quantization(4, block_size=32),
}
