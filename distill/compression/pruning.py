"""Weights that go one by one, by TensorFlow Model Optimization's schedule and masks."""

import dataclasses
import re

import keras
import numpy as np
import tensorflow as tf

from tfnlp.errors import InputError

# Prunings between the first step and the last where the schedule does not say.
PRUNINGS = 20


def block_kernels(model):
    """The dense kernels of a model's blocks, a list of variables; no tables and no heads."""
    return [
        weight
        for weight in model.weights
        if re.match(r"encoder(_\d+)?/", weight.path)
        and weight.path.endswith("/kernel")
        and len(weight.shape) == 2
    ]


@dataclasses.dataclass(frozen=True)
class PruningConfig:
    """How the dense kernels of a model's blocks are pruned as it trains.

    Zhu & Gupta 2017, 'To prune, or not to prune', eq. 1: the share of zeros rises from 0 at
    `begin_step` to `sparsity` at `end_step`, fast at first.

    Args:
        sparsity: the share of zeros at the end.
        pattern: "magnitude" for the smallest weights of each kernel; "2:4" for the 2 smallest
            of each 4 inputs of a unit, at once and not step by step; "HxW", such as "4x1", for
            blocks of H inputs and W outputs by their mean magnitude.
        begin_step: the first step after which weights go.
        end_step: the last one; half of all steps where None, so that the rest mends the loss.
        frequency: steps from one pruning to the next; a 20th of the time between where None.
    """

    sparsity: float
    pattern: str = "magnitude"
    begin_step: int = 0
    end_step: int | None = None
    frequency: int | None = None

    def __post_init__(self):
        if not 0 < self.sparsity < 1:
            raise InputError(f"sparsity={self.sparsity} must lie between 0 and 1.")
        if self.pattern == "2:4" and self.sparsity != 0.5:
            raise InputError(
                f"sparsity={self.sparsity} does not fit pattern='2:4', which is 0.5; give that."
            )
        if self.pattern not in ("magnitude", "2:4") and not re.fullmatch(
            r"[1-9]\d*x[1-9]\d*", self.pattern
        ):
            raise InputError(
                f"pattern={self.pattern!r} must be magnitude, 2:4, or a block of inputs by "
                "outputs such as 4x1."
            )

    @property
    def block_size(self):
        """(H, W) of a block."""
        if "x" not in self.pattern:
            return 1, 1
        return tuple(map(int, self.pattern.split("x")))

    def steps(self, total_steps):
        """The first and the last pruning, and the steps between two, in `total_steps`.

        Raises:
            InputError: where they do not fit in.
        """
        end = total_steps // 2 if self.end_step is None else self.end_step
        if not 0 <= self.begin_step < end <= total_steps:
            raise InputError(
                f"begin_step={self.begin_step} and end_step={end} must follow each other within "
                f"the {total_steps} steps of the training; prune earlier, or train longer."
            )
        frequency = self.frequency or max((end - self.begin_step) // PRUNINGS, 1)
        # The last pruning is one of the turns that come every `frequency` steps.
        turns = max((end - self.begin_step) // frequency, 1)
        frequency = min(frequency, end - self.begin_step)
        return self.begin_step, self.begin_step + turns * frequency, frequency

    def pruner(self, model, total_steps):
        """The `Pruner` of a model that trains for so many steps."""
        return Pruner(model, self, total_steps)


class Pruner(keras.layers.Layer):
    """Masks of a model's kernels, which its training updates and applies after each step.

    The masks and the schedule are those of TensorFlow Model Optimization (`Pruning`,
    `PolynomialDecay`), run on the variables of Keras 3: after a step, weights whose turn it is are
    masked anew by the magnitudes that the step left, then all masked weights are 0. They are
    weights of this layer, and so in the state of a run.

    Args:
        model: from `tfnlp.models.build_model`.
        config: a `PruningConfig`.
        total_steps: of the training, as it began.

    Raises:
        InputError: under several replicas, for a schedule that does not fit into the training,
            for a model without blocks, and for a pattern that does not divide its kernels.
    """

    def __init__(self, model, config, total_steps):
        super().__init__(name="pruner", trainable=False, dtype="float32")
        check_one_replica()
        self.first, self.last, frequency = config.steps(total_steps)
        # With its own steps: a run that goes on must have those that it had.
        steps = {"begin_step": self.first, "end_step": self.last, "frequency": frequency}
        self.config = dataclasses.replace(config, **steps)
        self.kernels = Untracked(block_kernels(model))
        if not self.kernels.items:
            raise InputError(f"Model {model.name} has no blocks of dense kernels to prune.")
        # The engine would cut blocks at the edges, where no runtime has kernels for the rest.
        rows, columns = config.block_size
        for kernel in self.kernels.items:
            if kernel.shape[0] % rows or kernel.shape[1] % columns:
                raise InputError(
                    f"pattern={config.pattern} does not divide the kernel {kernel.path} of "
                    f"{kernel.shape[0]} inputs by {kernel.shape[1]} outputs; give a block that "
                    "does, such as 4x1."
                )
        self.masks = [
            self.add_weight(shape=k.shape, initializer="ones", trainable=False, name=f"mask_{i}")
            for i, k in enumerate(self.kernels.items)
        ]
        self.thresholds = [
            self.add_weight(shape=(), initializer="zeros", trainable=False, name=f"threshold_{i}")
            for i in range(len(self.masks))
        ]
        self.built = True
        self.run_engine = self._engine(frequency)

    def _engine(self, frequency):
        """A function of the step's number: updates the masks when it is time, and applies them."""
        # Here, as the import turns `tf.keras` into Keras 2 for the whole process.
        from tensorflow_model_optimization.python.core.sparsity.keras import (
            pruning_impl,
            pruning_schedule,
        )

        step = tf.Variable(0, dtype="int64", trainable=False)
        by_four = (2, 4) if self.config.pattern == "2:4" else None
        engine = pruning_impl.Pruning(
            step.read_value,
            [
                (kernel.value, mask.value, threshold.value)
                for kernel, mask, threshold in zip(
                    self.kernels.items, self.masks, self.thresholds, strict=True
                )
            ],
            pruning_schedule.PolynomialDecay(
                0.0, self.config.sparsity, self.first, self.last, frequency=frequency
            ),
            self.config.block_size,
            "AVG",
            by_four,
        )

        def run(number):
            # The engine masks by 2:4 at step 1, whatever the schedule says.
            step.assign(tf.cast(number, "int64") - (self.first if by_four else 0))
            engine.conditional_mask_update()
            engine.weight_mask_op()

        return run

    def after_step(self, number):
        """Masks the weights after the step of this number, counted from 1."""
        self.run_engine(number)

    def complete(self, number):
        """Whether the model has all its zeros after so many steps."""
        return int(number) >= (self.first + 1 if self.config.pattern == "2:4" else self.last)

    def figures(self, model):
        """{"sparsity": the share of zeros in the kernels of a model}."""
        return {"sparsity": sparsity(model)}


def sparsity(model):
    """The share of zeros in the dense kernels of a model's blocks."""
    kernels = [np.asarray(kernel) for kernel in block_kernels(model)]
    return sum(np.count_nonzero(k == 0) for k in kernels) / sum(k.size for k in kernels)


@dataclasses.dataclass
class Untracked:
    """A list that a Keras layer that holds it does not take for its own weights."""

    items: list


def check_one_replica():
    """Raises an InputError under a strategy of several replicas."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas > 1:
        raise InputError(
            f"Weights are held to a form on one device, but the strategy has {replicas} replicas; "
            "use strategy='one_device'."
        )
