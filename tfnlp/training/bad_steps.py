"""Steps whose numbers are not finite, or whose loss explodes, change no weight."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.losses import whole
from tfnlp.training.optimizer import ReplicaLossScaleOptimizer

# A loss explodes where it is so many times the mean of those before it, counted as 1 at least.
EXPLODES = 10.0
# By which that mean forgets earlier losses.
DECAY = 0.99
FINE, NOT_FINITE, EXPLODED = 0, 1, 2


@keras.saving.register_keras_serializable("tfnlp")
class FiniteSteps(ReplicaLossScaleOptimizer):
    """An optimizer without the steps at which a replica's gradients are not finite.

    Keras' loss scale optimizer leaves them out; here the scale is 1 and stays so, and
    `step_counter` is 1 after a step that was left out, else 0.
    """

    def __init__(self, inner_optimizer, **kwargs):
        super().__init__(inner_optimizer, **{"initial_scale": 1.0, **kwargs})

    def check_finite(self, grads):
        # Of the rows of a table those in use.
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
    """An optimizer that leaves steps out; a loss scale optimizer does so already."""
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return optimizer
    return FiniteSteps(optimizer)


class FiniteMean(keras.metrics.Mean):
    """The mean of the values that are finite."""

    def update_state(self, values, sample_weight=1.0):
        values = ops.convert_to_tensor(values)
        finite = ops.isfinite(values)
        weight = ops.cast(sample_weight, "float32") * ops.cast(finite, "float32")
        super().update_state(ops.where(finite, values, 0.0), weight)


class LeavesOutBadSteps:
    """A mixin for a `keras.Model` that leaves bad steps out, and says so.

    A loss that explodes becomes NaN, so that its gradients are, and the optimizer leaves the step
    out. On all replicas it is the same loss.
    """

    def compile(self, optimizer, **kwargs):
        super().compile(finite_steps(optimizer), **kwargs)
        # Keras' own would be NaN for the rest of the epoch.
        self._loss_tracker = FiniteMean(name="loss")
        with self.distribute_strategy.scope():
            # What the last step was, its loss, and the mean of the losses until then, 0 for none.
            self.last_step = self.add_weight(
                shape=(3,),
                initializer="zeros",
                trainable=False,
                aggregation="only_first_replica",
                name="last_step",
            )

    def watched(self, loss):
        """The loss of a training step, NaN where it explodes."""
        here, usual = ops.stop_gradient(whole(loss)), self.last_step[2]
        finite = ops.isfinite(here)
        limit = EXPLODES * ops.maximum(usual, 1.0)
        exploded = ops.logical_and(usual > 0, here > limit)
        kind = ops.where(finite, ops.where(exploded, EXPLODED, FINE), NOT_FINITE)
        mean = ops.where(usual > 0, DECAY * usual + (1 - DECAY) * here, here)
        mean = ops.where(kind == FINE, mean, usual)
        shown = ops.where(finite, here, 0.0)
        self.last_step.assign(ops.stack([ops.cast(kind, "float32"), shown, mean]))
        return loss * ops.where(kind == EXPLODED, np.nan, 1.0)

    def left_out(self):
        """Why the last step was left out, in words; None where it was not."""
        kind, loss, usual = np.asarray(self.last_step)
        if kind == NOT_FINITE:
            return "the loss is not finite"
        if kind == EXPLODED:
            return f"the loss is {loss:.4g}, of {usual:.4g} before"
        if isinstance(self.optimizer, FiniteSteps) and np.asarray(self.optimizer.step_counter):
            return "the gradients are not finite"
        return None

    def forget(self):
        """Empties what it remembers of a bad batch, such as a memory that is not finite."""
        for variable in self.non_trainable_variables:
            floating = keras.backend.is_float_dtype(variable.dtype)
            if floating and not np.isfinite(np.asarray(variable)).all():
                variable.assign(ops.zeros_like(variable))
