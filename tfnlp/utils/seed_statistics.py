"""Statistics of variants over seeds: means, standard errors, and differences to a base."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Mean with its standard error; the error is None for fewer than two values."""

    mean: float
    error: float | None
    count: int

    @classmethod
    def of(cls, values):
        """Return the estimate from numbers; None if no number is finite."""
        values = np.asarray([v for v in values if v is not None and math.isfinite(v)], "float64")
        if not len(values):
            return None
        error = None
        if len(values) > 1:
            error = float(values.std(ddof=1) / math.sqrt(len(values)))
        return cls(float(values.mean()), error, len(values))


@dataclasses.dataclass(frozen=True)
class VariantFigure:
    """Figure of a variant over its seeds.

    Args:
        estimate: an `Estimate`, or None where no run has the figure.
        difference: the `Estimate` of the difference to the base, over the seeds that both have, so
            that effects of a seed on both cancel. None for the base.
    """

    estimate: Estimate | None
    difference: Estimate | None


def summarise_variants(runs, base, metrics):
    """Return {variant: {metric: `VariantFigure`}}, the figures of variants over their seeds.

    Args:
        runs: {variant: {seed: {name: number}}}.
        base: the variant that others are compared with.
        metrics: names of figures.
    """
    return {
        variant: {
            metric: VariantFigure(
                Estimate.of(figures.get(metric) for figures in seeds.values()),
                None if variant == base else _difference(seeds, runs.get(base, {}), metric),
            )
            for metric in metrics
        }
        for variant, seeds in runs.items()
    }


def _difference(seeds, base, metric):
    pairs = [(seeds[s].get(metric), base[s].get(metric)) for s in seeds if s in base]
    return Estimate.of(a - b for a, b in pairs if None not in (a, b))
