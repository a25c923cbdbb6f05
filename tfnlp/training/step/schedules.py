"""Learning rate schedules with a linear warm-up.

Each equals the schedule of `transformers` with the same name, step by step, after a warm-up whose
first rate is 0.
"""

import abc
import math

import keras
from keras import ops

from tfnlp.utils.errors import InputError


class _Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """Base class of the schedules.

    Args:
        peak: the highest rate.
        total_steps: the steps of the training.
        warmup_steps: the steps until the peak.
        end_share: the share of the peak to which the rate falls.

    Raises:
        InputError: if there is more warm-up than training.
    """

    def __init__(self, peak, total_steps, warmup_steps=0, end_share=0.0):
        if warmup_steps > total_steps:
            raise InputError(
                f"warmup_steps={warmup_steps} is more than the {total_steps} steps of the "
                "training; give fewer, or more `epochs`."
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.end_share = end_share

    def __call__(self, step):
        step = ops.cast(step, "float32")
        after = self.end_share + (1 - self.end_share) * self.after_warmup(step)
        if self.warmup_steps:
            after = ops.where(step < self.warmup_steps, step / self.warmup_steps, after)
        return self.peak * after

    @abc.abstractmethod
    def after_warmup(self, step):
        """Return the factor of the rate at a step of the training: 1 at the peak, 0 at the end."""

    def _progress(self, step):
        """Return the finished share of the steps after the warm-up, from 0 to 1."""
        steps = max(self.total_steps - self.warmup_steps, 1)
        return ops.clip((step - self.warmup_steps) / steps, 0.0, 1.0)

    def get_config(self):
        return dict(vars(self))


@keras.saving.register_keras_serializable("tfnlp")
class WarmupLinearDecay(_Warmup):
    """Linear decay until the end: Devlin et al. 2019, appendix A.2."""

    def after_warmup(self, step):
        return 1 - self._progress(step)


@keras.saving.register_keras_serializable("tfnlp")
class WarmupCosineDecay(_Warmup):
    """Half-cosine decay until the end: Loshchilov & Hutter 2017, eq. 5."""

    def after_warmup(self, step):
        return 0.5 * (1 + ops.cos(math.pi * self._progress(step)))


@keras.saving.register_keras_serializable("tfnlp")
class WarmupPolynomialDecay(_Warmup):
    """Decay until the end by a power of the share of steps that are left.

    Args:
        power: the exponent; 1 for a linear decay.
    """

    def __init__(self, *args, power=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.power = power

    def after_warmup(self, step):
        return (1 - self._progress(step)) ** self.power


@keras.saving.register_keras_serializable("tfnlp")
class WarmupStableDecay(_Warmup):
    """Constant rate at the peak, then a fall by the square root of the share of the last steps.

    Hägele et al. 2024 ('Scaling Laws and Compute-Optimal Training Beyond Fixed Training
    Durations'), section 3; `decay_type="1-sqrt"` of `transformers.get_wsd_schedule`.

    Args:
        decay_steps: the steps in which the rate falls.

    Raises:
        InputError: if warm-up and decay have more steps than the training.
    """

    def __init__(self, *args, decay_steps, **kwargs):
        super().__init__(*args, **kwargs)
        self.decay_steps = decay_steps
        if self.warmup_steps + decay_steps > self.total_steps:
            raise InputError(
                f"{self.warmup_steps} steps of warm-up and {decay_steps} of decay are more than "
                f"the {self.total_steps} of the training; give a smaller `decay_share` or "
                "`warmup_share`."
            )

    def after_warmup(self, step):
        start = self.total_steps - self.decay_steps
        progress = ops.clip((step - start) / max(self.decay_steps, 1), 0.0, 1.0)
        return 1 - ops.sqrt(progress)


@keras.saving.register_keras_serializable("tfnlp")
class WarmupInverseSquareRoot(_Warmup):
    """Decay with the inverse square root of the step: Vaswani et al. 2017, section 5.3, eq. 3.

    Without warm-up the rate falls as if the peak had been reached at step 10,000.
    """

    def after_warmup(self, step):
        scale = self.warmup_steps or 10_000
        return 1 / ops.sqrt((step + scale - self.warmup_steps) / scale)


@keras.saving.register_keras_serializable("tfnlp")
class WarmupConstant(_Warmup):
    """Constant rate at the peak."""

    def after_warmup(self, step):
        return ops.ones_like(step)


def vaswani_peak(width, warmup_steps):
    """Return the peak of Vaswani et al. 2017, section 5.3, eq. 3, for `WarmupInverseSquareRoot`.

    The rate of step t is then width**-0.5 * min(t**-0.5, t * warmup_steps**-1.5); it is 0 at the
    first step.

    Args:
        width: D of the model.
        warmup_steps: the steps until the peak, at least 1.
    """
    return (width * warmup_steps) ** -0.5


# Schedules by the names of flags and of `transformers`.
SCHEDULES = {
    "linear": WarmupLinearDecay,
    "cosine": WarmupCosineDecay,
    "polynomial": WarmupPolynomialDecay,
    "wsd": WarmupStableDecay,
    "inverse_sqrt": WarmupInverseSquareRoot,
    "constant": WarmupConstant,
}
