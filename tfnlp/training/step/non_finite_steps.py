"""Skipping of training steps with non-finite numbers or an exploding loss."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.functional.weighted_losses import mean_over_replicas
from tfnlp.training.step.optimizer import ReplicaLossScaleOptimizer

# A loss explodes if it is above this multiple of the mean of earlier losses, taken as at least 1.
EXPLODES = 10.0
# Decay of that mean.
DECAY = 0.99
FINE, NOT_FINITE, EXPLODED = 0, 1, 2


@keras.saving.register_keras_serializable("tfnlp")
class FiniteSteps(ReplicaLossScaleOptimizer):
    """Optimizer that skips steps at which a replica's gradients are not finite.

    Keras' loss scale optimizer skips them; here the scale stays 1. `step_counter` is 1 after a
    skipped step, else 0.
    """

    def __init__(self, inner_optimizer, **kwargs):
        super().__init__(inner_optimizer, **{"initial_scale": 1.0, **kwargs})

    def check_finite(self, grads):
        # Of a table only the used rows have gradients.
        values = [g.values if isinstance(g, tf.IndexedSlices) else g for g in grads]
        return super().check_finite(values)

    def scale_loss(self, loss):
        return loss

    def _stateful_handle_finite_grads(self, grads, trainable_variables):
        self.step_counter.assign(0)
        self.inner_optimizer.apply(grads, trainable_variables=trainable_variables)

    def _stateful_handle_non_finite_grads(self):
        self.step_counter.assign(1)


def finite_steps(optimizer):
    """Return an optimizer that skips bad steps; a loss scale optimizer is returned as it is."""
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return optimizer
    return FiniteSteps(optimizer)


class FiniteMean(keras.metrics.Mean):
    """Mean of the finite values."""

    def update_state(self, values, sample_weight=1.0):
        values = ops.convert_to_tensor(values)
        finite = ops.isfinite(values)
        weight = ops.cast(sample_weight, "float32") * ops.cast(finite, "float32")
        super().update_state(ops.where(finite, values, 0.0), weight)


class SkipsNonFiniteSteps:
    """Mixin for a `Trainer` that skips bad steps and reports them.

    A loss that explodes becomes NaN, and so do its gradients, so that the optimizer skips the
    step. All replicas use the same loss.
    """

    def compile(self, optimizer, **kwargs):
        super().compile(finite_steps(optimizer), **kwargs)
        # Keras' own tracker would be NaN for the rest of the epoch.
        self._loss_tracker = FiniteMean(name="loss")
        with self.distribute_strategy.scope():
            # The kind of the last step, its loss, and the mean of earlier losses (0 for none).
            self.last_step = self.add_weight(
                shape=(3,),
                initializer="zeros",
                trainable=False,
                aggregation="only_first_replica",
                name="last_step",
            )

    def watched(self, loss):
        """Return the loss of a training step, or NaN if it explodes."""
        value, usual = ops.stop_gradient(mean_over_replicas(loss)), self.last_step[2]
        finite = ops.isfinite(value)
        limit = EXPLODES * ops.maximum(usual, 1.0)
        exploded = ops.logical_and(usual > 0, value > limit)
        kind = ops.where(finite, ops.where(exploded, EXPLODED, FINE), NOT_FINITE)
        mean = ops.where(usual > 0, DECAY * usual + (1 - DECAY) * value, value)
        mean = ops.where(kind == FINE, mean, usual)
        shown = ops.where(finite, value, 0.0)
        self.last_step.assign(ops.stack([ops.cast(kind, "float32"), shown, mean]))
        return loss * ops.where(kind == EXPLODED, np.nan, 1.0)

    def skip_reason(self):
        """Return the reason why the last step was skipped, or None if it was not."""
        kind, loss, usual = np.asarray(self.last_step)
        if kind == NOT_FINITE:
            return "the loss is not finite"
        if kind == EXPLODED:
            return f"the loss is {loss:.4g}, of {usual:.4g} before"
        if isinstance(self.optimizer, FiniteSteps) and np.asarray(self.optimizer.step_counter):
            return "the gradients are not finite"
        return None

    def reset_non_finite(self):
        """Reset non-trainable variables that are not finite, such as a memory of a bad batch."""
        for variable in self.non_trainable_variables:
            if not all_finite(variable):
                variable.assign(ops.zeros_like(variable))


def all_finite(variable):
    """Return whether no value of a variable is NaN or infinite."""
    floating = keras.backend.is_float_dtype(variable.dtype)
    return not floating or bool(np.isfinite(np.asarray(variable)).all())
