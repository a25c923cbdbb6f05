"""Weight pruning, with the schedule and masks of TensorFlow Model Optimization."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf

from distill.compression.block_kernels import block_kernels, kernels_to_compress
from tfnlp.utils.errors import InputError


class Pruner(keras.layers.Layer):
    """Pruning masks of a model's kernels, updated and applied after each training step.

    The masks and the schedule are those of TensorFlow Model Optimization (`Pruning`,
    `PolynomialDecay`), run on the variables of Keras 3. After a step that the schedule names, the
    masks are recomputed from the new magnitudes. After every step, masked weights are set to 0.
    The masks are weights of this layer, so the state of a run includes them.

    Args:
        model: from `tfnlp.models.build_model`.
        config: a `PruningConfig`.
        total_steps: of the training.

    Raises:
        InputError: if there are several replicas, the schedule does not fit into the training, the
            model has no blocks, or the pattern does not divide its kernels.
    """

    def __init__(self, model, config, total_steps):
        super().__init__(name="pruner", trainable=False, dtype="float32")
        self.kernels = kernels_to_compress(model, "prune")
        self.first, self.last, frequency = config.steps(total_steps)
        # Store the resolved steps: a resumed run must have the same ones.
        steps = {"begin_step": self.first, "end_step": self.last, "frequency": frequency}
        self.config = dataclasses.replace(config, **steps)
        self._check_blocks()
        shapes = [kernel.shape for kernel in self.kernels.items]
        self.masks = [self._state(x, "ones", f"mask_{i}") for i, x in enumerate(shapes)]
        self.thresholds = [self._state((), "zeros", f"threshold_{i}") for i in range(len(shapes))]
        self.built = True
        self.run_engine = self._engine(frequency)

    def _state(self, shape, initializer, name):
        return self.add_weight(shape, initializer, trainable=False, name=name)

    def _check_blocks(self):
        """Raise an InputError if the pattern's blocks do not divide a kernel.

        The engine would cut blocks at the edges, and no runtime has kernels for partial blocks.
        """
        rows, columns = self.config.block_size
        for kernel in self.kernels.items:
            if kernel.shape[0] % rows or kernel.shape[1] % columns:
                raise InputError(
                    f"pattern={self.config.pattern} does not divide the kernel {kernel.path} of "
                    f"{kernel.shape[0]} inputs by {kernel.shape[1]} outputs; give a block that "
                    "does, such as 4x1."
                )

    def _engine(self, frequency):
        """Build a function of the step that updates the masks on schedule, and applies them."""
        # Imported late: the import turns `tf.keras` into Keras 2 for the whole process.
        from tensorflow_model_optimization.python.core.sparsity.keras import (
            pruning_impl,
            pruning_schedule,
        )

        step = tf.Variable(0, dtype="int64", trainable=False)
        two_of_four = (2, 4) if self.config.pattern == "2:4" else None
        variables = zip(self.kernels.items, self.masks, self.thresholds, strict=True)
        engine = pruning_impl.Pruning(
            training_step_fn=step.read_value,
            pruning_vars=[tuple(x.value for x in kernel) for kernel in variables],
            pruning_schedule=pruning_schedule.PolynomialDecay(
                0.0, self.config.sparsity, self.first, self.last, frequency=frequency
            ),
            block_size=self.config.block_size,
            block_pooling_type="AVG",
            sparsity_m_by_n=two_of_four,
        )

        def run(number):
            # The engine applies 2:4 at its step 1, regardless of the schedule.
            step.assign(tf.cast(number, "int64") - (self.first if two_of_four else 0))
            engine.conditional_mask_update()
            engine.weight_mask_op()

        return run

    def before_step(self, gradients, variables):
        """Return the gradients: pruned weights learn too, as they may come back."""
        return gradients

    def after_step(self, number):
        """Mask the weights after a training step; `number` counts from 1."""
        self.run_engine(number)

    def complete(self, number):
        """Return whether the model has reached its final sparsity after step `number`."""
        return int(number) >= (self.first + 1 if self.config.pattern == "2:4" else self.last)

    def figures(self, model):
        """Return {"sparsity": share of zeros in the kernels of a model}."""
        return {"sparsity": sparsity(model)}


def sparsity(model):
    """Return the share of zeros in the dense kernels of a model's blocks."""
    kernels = [np.asarray(kernel) for kernel in block_kernels(model)]
    return sum(np.count_nonzero(k == 0) for k in kernels) / sum(k.size for k in kernels)
