"""Models that Keras fits: the training step of every training, and the losses of two of them."""

import keras
import tensorflow as tf
from keras import ops
from keras.src.trainers.data_adapters.data_adapter_utils import unpack_x_y_sample_weight

from tfnlp.functional.weighted_losses import (
    computes_part,
    entry_count,
    mean_over_replicas,
    with_entries,
)
from tfnlp.tasks.kinds import kind_of_task
from tfnlp.training.step.accumulation import accumulated_gradients
from tfnlp.training.step.cached_gradients import cached_gradients
from tfnlp.training.step.non_finite_steps import FiniteMean, SkipsNonFiniteSteps
from tfnlp.training.step.shared_traces import shared_traces
from tfnlp.training.step.workers import several_workers


class Trainer(keras.Model):
    """Model with the training step of fine-tuning, pretraining, translation and distillation.

    Children define `call` and `compute_loss`. Replicas may have unequal shares of a batch.

    Attributes:
        accumulation_steps: sequential parts of each batch.
        accumulate: function from the trainer, a batch and its number of parts to the gradients.
        compressor: layer that constrains the weights, such as a
            `distill.compression.weight_pruning.Pruner`, or None. `before_step(gradients,
            variables)` returns gradients within the constraint, and after each step
            `after_step(number)` restores it. An epoch may be the best only once
            `complete()` is true. The compressor's weights are part of the run's state.
        step_log: the `StepLog` of steps between lines of the log, or None.
        part_weights: {name of a tracker: weight} of the parts that the loss is the sum of; none
            where the loss has a mean of its own.
    """

    accumulation_steps = 1
    accumulate = staticmethod(accumulated_gradients)
    compressor = None
    step_log = None
    part_weights = None

    def fit(self, *args, **kwargs):
        """Train as Keras does; on one replica, blocks of one kind are traced once."""
        # XLA would take all that a shared function reads for constants: each step compiled anew.
        if self.distribute_strategy.num_replicas_in_sync > 1 or self.jit_compile:
            return super().fit(*args, **kwargs)
        with shared_traces(self):
            return super().fit(*args, **kwargs)

    def train_step(self, data):
        """Return the metrics after one step on a replica's share of a batch."""
        if self.accumulation_steps > 1:
            gradients = self.accumulate(self, data, self.accumulation_steps)
        else:
            x, y, sample_weight = unpack_x_y_sample_weight(data)
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(x, y, y_pred, sample_weight, training=True)
                scaled = self.optimizer.scale_loss(loss)
            gradients = tape.gradient(scaled, self.trainable_weights)
            self.update_metrics(x, y, y_pred, sample_weight, loss)
        self.apply_gradients(gradients)
        return self.get_metrics_result()

    def apply_gradients(self, gradients):
        """Update the weights.

        The gradients of every training pass here, in the order of `trainable_weights`: those of
        the replica's share of the batch, before clipping, times the loss scale. A table's have a
        row for each occurrence of a token, which `summed_gradients` of `optimizer.py` sums, as a
        norm needs. A metric that is made in `__init__` and updated here is logged for each
        epoch.
        """
        if self.compressor is not None:
            gradients = self.compressor.before_step(gradients, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        if self.compressor is not None:
            self.compressor.after_step(self.optimizer.iterations)

    def update_metrics(self, x, y, y_pred, sample_weight, loss):
        """Add a batch, or a part of it, to the epoch's mean loss and the compiled metrics."""
        # Over entries, such as tokens, if the loss is a `weighted_mean`; else over examples.
        self.track(self._loss_tracker, loss, entry_count(loss, batch_rows(x)))
        self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
        if self.step_log is not None:
            self.step_log.count(x, y_pred)

    def track(self, tracker, loss, weight, training=True):
        """Add a batch's loss by its weight to the mean of the epoch, and of the steps of a log."""
        value = mean_over_replicas(loss)
        tracker.update_state(value, sample_weight=weight)
        if training and self.step_log is not None:
            self.step_log.means[tracker.name].update_state(value, sample_weight=weight)

    def get_metrics_result(self):
        logs = super().get_metrics_result()
        if self.part_weights:
            logs["loss"] = weighted_sum(logs, self.part_weights)
        return logs

    def _make_function(self, step_function):
        if not several_workers(self.distribute_strategy):
            return super()._make_function(step_function)

        def step(data):
            # Keras 3.15 averages the logs of several workers over an axis that scalars lack.
            return keras.tree.map_structure(lambda value: value[None], step_function(data))

        return super()._make_function(step)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Keras builds metrics and losses from the mean of all replicas' shares, which requires
        # equal ones; here it builds them from the first share.
        strategy = self.distribute_strategy
        if iterator is not None and strategy.num_replicas_in_sync > 1:
            _, _, batches = next(iter(iterator))
            data_batch = keras.tree.map_structure(
                lambda value: strategy.experimental_local_results(value)[0], next(batches)
            )
            iterator = None
        super()._maybe_symbolic_build(iterator, data_batch)


class FineTuner(Trainer):
    """Trainable wrapper of a model for a task; the wrapped model is saved without it.

    Args:
        model: from `tfnlp.models.build_model`, with the task's head.
        task: see `tfnlp.tasks`.
        regularizer: an `AdversarialRegularizer`, whose loss is added in training, and logged
            without its weight as `adversarial_loss`; or None.
    """

    # Name of the task's loss in the log.
    task_loss = "loss"

    def __init__(self, model, task, regularizer=None, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.batch_model = task.batch_model(model)
        self.task = task
        self.kind = kind_of_task(task)
        if task.compares_examples:
            self.accumulate = cached_gradients
        self.regularizer = regularizer
        # Tracked, so that a resumed run draws the same numbers as an uninterrupted one.
        self.regularizer_seed = getattr(regularizer, "seed_generator", None)
        if regularizer is not None:
            self.adversarial_tracker = keras.metrics.Mean(name="adversarial_loss")
        self.built = True

    def call(self, inputs, training=None):
        if training and self.regularizer is not None:
            self.regularizer.keep_draws()
        outputs = self.batch_model(inputs, training=training)
        return {key: outputs[key] for key in self.kind.reads}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = self.task.loss(y, y_pred, sample_weight)
        if training and self.regularizer is not None:
            divergence = self.regularizer(x, y_pred, sample_weight)
            self.track(self.adversarial_tracker, divergence, batch_rows(x))
            loss = loss + self.regularizer.weight * divergence
        return loss


class Pretrainer(SkipsNonFiniteSteps, Trainer):
    """Trainable wrapper of the models of an objective, which are saved without it.

    The loss is the weighted sum of the objective's losses; each is also logged by its name,
    without its weight. A step whose loss or gradients are not finite, or whose loss explodes,
    changes no weight.

    Args:
        objective: see `tfnlp.objectives`.
        model: the model that its method `trained` returns.
    """

    def __init__(self, objective, model, **kwargs):
        super().__init__(**kwargs)
        self.objective = objective
        self.model = model
        # A single loss equals the total loss.
        weights = objective.loss_weights
        self.part_weights = dict(weights) if len(weights) > 1 else {}
        self.trackers = {name: FiniteMean(name=name) for name in self.part_weights}
        self.built = True

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        losses = self.objective.losses(y, y_pred, sample_weight)
        loss = weighted_sum(losses, self.objective.loss_weights)
        # With gradient accumulation the step checks the sum over the parts.
        if training and not computes_part():
            loss = self.watched(loss)
        kept = ops.where(ops.isfinite(loss), 1.0, float("nan"))  # of a skipped step no part counts
        for name, tracker in self.trackers.items():
            weight = entry_count(losses[name], batch_rows(x))
            self.track(tracker, losses[name] * kept, weight, training)
        (first, *others) = losses.values()
        return loss if others else with_entries(loss, entry_count(first, batch_rows(x)))


def weighted_sum(losses, weights):
    """Return the sum of losses times their weights, both dicts by name."""
    return sum(weight * losses[name] for name, weight in weights.items())


def batch_rows(inputs):
    """Return the number of examples of a batch's inputs."""
    return ops.shape(keras.tree.flatten(inputs)[0])[0]
