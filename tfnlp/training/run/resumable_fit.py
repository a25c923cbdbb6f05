"""Training loop around Keras' `fit`: progress, early stopping, best weights, and exact resume."""

import collections
import contextlib
import dataclasses
import functools
import math
import re
import signal
import threading
from collections.abc import Callable

import keras
import numpy as np
from absl import logging
from tqdm import tqdm

from tfnlp.training.run.kept_models import KeptModels
from tfnlp.training.run.run_folder import BAD_BATCH, RunFolder
from tfnlp.training.run.step_log import StepLog
from tfnlp.training.run.trackers import open_trackers
from tfnlp.training.run.training_config import TrainingConfig
from tfnlp.training.step.non_finite_steps import all_finite
from tfnlp.training.step.optimizer import averaged_weights
from tfnlp.training.step.workers import (
    any_worker,
    check_same,
    plain_errors,
    several_workers,
    shared_dataset,
    wait_for_all,
)
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# Number of consecutive bad batches at which the data is no longer blamed.
MOST_IN_A_ROW = 10
# Loss scale below which skipped steps are no longer blamed on the scale.
LEAST_LOSS_SCALE = 1e-4


def fit(model, batches, config, run, save_model, **options):
    """Train a compiled model, or resume a killed run of the same folder.

    A resumed run ends with the same weights as an uninterrupted one. The state holds weights,
    optimizer, dropout seeds and metrics, and the order of the data depends only on seed and epoch.
    Signals are handled on the main thread only.

    Args:
        model: a compiled `keras.Model`.
        batches: the `EpochBatches` to train on.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        save_model: function that writes the model to a folder, such as `run.best` after each epoch
            that is the best so far.
        options: `monitor`, `evaluate` and `fingerprints` of `RunRecorder`.

    Returns:
        The number of the best epoch, from 1; None without a `monitor`.

    Raises:
        InputError: if there is a `patience` without a metric, before any work. If the loss or a
            weight becomes NaN or infinite, or a loss scale falls without end; the message names
            the step and the batch, which is saved as `bad_batch.npz`, and the folder keeps the
            last good state and the best weights. If the folder's state is of another model or of
            other data, or another process writes to it. If the batches raise it, such as for a
            damaged shard. If workers were started with other flags or data than the first, or one
            is lost.
        KeyboardInterrupt: on SIGINT or SIGTERM, after the current step, with the state saved.
    """
    recorder = RunRecorder(batches, config, run, save_model, **options)
    if config.patience and None in (recorder.monitor, recorder.evaluate):
        raise InputError(
            f"patience={config.patience} has no effect here, where the last epoch is kept and no "
            "score on dev is waited for; leave it out."
        )
    steps = config.total_steps(len(batches))
    if recorder.kept.every and recorder.kept.every > steps:
        logging.warning(
            "keep_every=%d is more than the %d steps of the training: no model is kept.",
            recorder.kept.every,
            steps,
        )
    strategy = model.distribute_strategy
    several = several_workers(strategy)
    with strategy.scope():
        model.optimizer.build(model.trainable_variables)
        log = getattr(model, "step_log", None)  # the traced step counts into it
        model.step_log = (log or StepLog(model)) if config.log_steps else None
    recorder.set_model(model)

    @functools.cache  # with several workers a new dataset would retrace the steps
    def dataset(skip):
        data = batches.dataset(lambda: recorder.progress.epoch, skip)
        return shared_dataset(strategy, data, len(batches) - skip)

    with run.alone():
        recorder.restore()
        facts = {"flags": run.flags, "settings": dataclasses.asdict(config)}
        facts |= {"data": recorder.fingerprints, "state": vars(recorder.progress)}
        check_same(strategy, facts)
        if recorder.finished:
            logging.info("%s is complete; nothing to train.", run.path)
            return recorder.progress.best_epoch
        run.start()
        with recorder.running(), plain_errors(strategy, batches):
            while not (recorder.finished or recorder.interrupted):
                start, skip = recorder.progress.epoch, recorder.progress.step
                if skip == recorder.steps_of(start):  # the run was killed before dev was evaluated
                    recorder.finish_epoch()
                    continue
                model.fit(
                    dataset(skip),
                    # The rest of an interrupted epoch needs its own `fit`, since Keras assumes as
                    # many steps for every epoch. So does each epoch of several workers, whose
                    # datasets Keras cannot count.
                    epochs=start + 1 if skip or several else recorder.epochs,
                    initial_epoch=start,
                    steps_per_epoch=len(batches) - skip if several else None,
                    callbacks=[recorder],
                    shuffle=False,
                    verbose=0,
                )
            wait_for_all(strategy)  # the chief has saved
    return recorder.progress.best_epoch


@dataclasses.dataclass
class Progress:
    """Progress of a run, of JSON values.

    Args:
        epoch: the finished epochs.
        step: the finished steps within the epoch.
        best: the best score of an epoch on dev, negative of a loss or an error.
        best_epoch: the number of that epoch; None before, and in states of earlier versions.
        waited: the epochs since.
        stopped: whether patience has ended the run.
        logs: the metrics of a finished epoch that dev has yet to score.
        kept: {steps as text: score} of the best epochs, see `KeptModels.rank`.
        skipped: the steps that were skipped.
        in_a_row: those since the last that was not.
        bad: why the last step ended the run, a sentence.
    """

    epoch: int = 0
    step: int = 0
    best: float | None = None
    best_epoch: int | None = None
    waited: int = 0
    stopped: bool = False
    logs: dict | None = None
    kept: dict = dataclasses.field(default_factory=dict)
    skipped: int = 0
    in_a_row: int = 0
    bad: str | None = None


@dataclasses.dataclass(eq=False)
class RunRecorder(keras.callbacks.Callback):
    """Callback that updates the run folder, shows progress, and stops the training.

    Args:
        batches, config, run, save_model: as in `fit`.
        monitor: the metric that is highest in the best epoch, or lowest of a loss or an error;
            without it, each epoch counts as the best. An epoch with a non-finite value (NaN) is
            never the best, but the first epoch is always saved.
        evaluate: function without arguments, called after each epoch; returns a dict of further
            metrics.
        fingerprints: a dict of fingerprints (`tfnlp.training.run.fingerprints`) of further
            inputs that decide the result, by name, such as "train"; that of `batches` is added.

    Attributes:
        progress: the `Progress` of the run, part of its state.
        interrupted: True once a signal has stopped the training.
    """

    batches: object
    config: TrainingConfig
    run: RunFolder
    save_model: Callable
    monitor: str | None = None
    evaluate: Callable | None = None
    fingerprints: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        super().__init__()
        encoded = {"the encoded batches": self.batches.fingerprint()}
        self.fingerprints = {**self.fingerprints, **encoded}
        self.progress = Progress()
        self.epochs = self.config.total_epochs(len(self.batches))
        self.kept = KeptModels(
            self.run.checkpoints,
            self.write_checkpoint,
            every=self.config.keep_every,
            best=self.config.keep_best,
        )
        self.signal = None
        self.interrupted = False
        self.sums = {}  # of the metrics, from a killed run's last epoch

    def restore(self):
        """Load the state from the run folder, if there is one."""
        self.variables = variable_names(self.model)
        state = self.run.load_state(self.variables, self.fingerprints)
        if state is None:
            if not self.run.overwritten:
                self.run.truncate_metrics(0, 0)
            return
        progress, self.sums = state
        self.progress = Progress(**progress)
        for name, variable in self.log_variables().items():
            if name in self.sums:
                variable.assign(self.sums[name])
        if self.model.step_log is not None:
            self.model.step_log.restored()
        self.sums = {n: value for n, value in self.sums.items() if n in metric_names(self.model)}
        if self.progress.bad and self.config.on_nan != "skip":
            raise InputError(self.progress.bad)
        self.progress.bad = None
        self.run.truncate_metrics(self.progress.epoch, self.step)
        if not self.finished:
            place = self.progress.epoch, self.progress.step
            logging.info("Resuming %s after epoch %d, step %d.", self.run.path, *place)

    @property
    def finished(self):
        return self.progress.stopped or self.progress.epoch >= self.epochs

    @property
    def step(self):
        """The finished steps of all epochs."""
        return self.progress.epoch * len(self.batches) + self.progress.step

    def steps_of(self, epoch):
        """Return the steps of an epoch, counted from 0: fewer in one that `max_steps` ends."""
        steps = len(self.batches)
        return min(steps, self.config.total_steps(steps) - epoch * steps)

    def log_variables(self):
        """Return the variables of the figures of steps by stable names, a dict."""
        log = self.model.step_log
        return {} if log is None else _by_stable_names(log.variables)

    @contextlib.contextmanager
    def running(self):
        """Show the progress bar, open trackers, and let SIGINT and SIGTERM stop after a step.

        Raises:
            KeyboardInterrupt: if one of them did.
        """
        bar = progress_bar(
            total=self.config.total_steps(len(self.batches)),
            initial=self.step,
            unit="step",
            disable=not self.run.writes,
        )
        # Python allows handlers only in the main thread.
        in_main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM) if in_main else ()
        previous = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            # Trackers open first, so that they see the interrupt.
            with open_trackers(self.run, self.config) as self.track, bar as self.bar:
                yield
                if not self.finished:
                    raise KeyboardInterrupt
        finally:
            for number, handler in previous.items():
                # None: the handler was not set from Python, which cannot restore it.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _on_signal(self, number, frame):
        self.signal = number
        tqdm.write("Stopping after this step; the state is being saved.")
        signal.signal(number, signal.SIG_DFL)  # a second signal takes effect at once

    def stop_if_asked(self):
        """Stop Keras' `fit` if this or another worker received a signal; the state is saved."""
        if any_worker(self.model.distribute_strategy, self.signal is not None):
            self.interrupted = self.model.stop_training = True
        return self.interrupted

    def on_epoch_begin(self, epoch, logs=None):
        self.bar.set_description(f"epoch {epoch + 1}/{self.epochs}", refresh=False)
        if self.model.step_log is not None:
            self.model.step_log.run_clock(True)

    def on_train_batch_end(self, batch, logs=None):
        if self.sums:
            # `fit` has reset the epoch's metric sums: add those of the killed run.
            for name, variable in metric_names(self.model).items():
                variable.assign_add(self.sums[name])
            self.sums = {}
        self.progress.step += 1
        step = self.progress.step
        self.check_step(logs["loss"])
        self.bar.update()
        if step % 20 == 0:
            self.bar.set_postfix(loss=f"{logs['loss']:.4f}", refresh=False)
        epoch_ends = step == self.steps_of(self.progress.epoch)
        if epoch_ends and step < len(self.batches):
            self.model.stop_training = True  # at `max_steps`
        self.log_step(epoch_ends)
        saves = epoch_ends or step % self.config.checkpoint_steps == 0 or self.kept.due(self.step)
        if self.stop_if_asked() or saves:
            self.check_weights()
            if self.kept.due(self.step):
                self.kept.keep(self.step)
            if epoch_ends:  # keep the metrics, since the evaluation on dev may fail
                metrics = self.model.get_metrics_result()
                self.progress.logs = {key: float(value) for key, value in metrics.items()}
            self.save()

    def log_step(self, epoch_ends):
        """Write the figures of steps if it is time for them; stop their clock between epochs."""
        log = self.model.step_log
        if log is None:
            return
        if self.step % self.config.log_steps == 0:
            figures = log.line()
            self.run.log_step(self.step, figures)
            self.track("step", self.step, figures)
        if epoch_ends:
            log.run_clock(False)

    def write_checkpoint(self, folder):
        """Write the model, or the averages of its weights, to a folder."""
        if self.run.writes:
            with averaged_weights(self.model):
                self.save_model(folder)

    def finish_epoch(self):
        """End an epoch whose steps were complete when the run was killed."""
        self.sums = {}
        self.on_epoch_end(self.progress.epoch, self.progress.logs)

    def on_epoch_end(self, epoch, logs=None):
        if self.interrupted:
            return
        logs = {key: float(value) for key, value in logs.items()}
        if self.evaluate is not None:
            with averaged_weights(self.model):
                logs |= self.evaluate()
        steps = self.step
        self.progress.epoch, self.progress.step, self.progress.logs = epoch + 1, 0, None
        if self.progress.skipped:
            logs["skipped_steps"] = self.progress.skipped
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        self.log(logs)
        # A model counts as the best only once its compression is complete.
        compressor = getattr(self.model, "compressor", None)
        complete = compressor is None or compressor.complete(self.model.optimizer.iterations)
        score = self.score_of(logs)
        is_best = complete and self.is_best(score)
        if is_best:
            self.progress.best, self.progress.waited = score, 0
            if score is not None:
                self.progress.best_epoch = epoch + 1
                self.track("epoch", epoch + 1, {"best_epoch": epoch + 1})
        else:
            self.progress.waited += complete
        if is_best or epoch == 0:
            self.write_checkpoint(self.run.best)
        rank = -logs["val_loss"] if self.monitor is None and "val_loss" in logs else score
        if self.kept.best and complete and rank is not None and math.isfinite(rank):
            self.progress.kept = self.kept.rank(steps, rank, self.progress.kept)
        if 0 < self.config.patience <= self.progress.waited:
            self.progress.stopped = self.model.stop_training = True
        self.save()
        if not self.finished:
            self.stop_if_asked()

    def log(self, logs):
        """Write the metrics of an epoch to metrics.jsonl, the trackers and the terminal."""
        epoch = self.progress.epoch
        self.run.log({"epoch": epoch, **logs})
        self.track("epoch", epoch, logs)
        shown = ", ".join(f"{k} {x:.4f}" for k, x in logs.items() if k != "learning_rate")
        if self.run.writes:
            tqdm.write(f"epoch {epoch}: {shown}")

    def score_of(self, logs):
        """Return the monitored metric, negative where the lowest is best; None without one."""
        score = logs.get(self.monitor)
        return -score if score is not None and lower_is_better(self.monitor) else score

    def is_best(self, score):
        """Return whether an epoch with this score is the best so far; a tie is not."""
        if score is None:
            return True
        if not math.isfinite(score):
            after = f"{score} after epoch {self.progress.epoch}"
            logging.warning("%s is %s, which does not count as the best.", self.monitor, after)
            return False
        return self.progress.best is None or score > self.progress.best

    def check_step(self, loss):
        """Check the last step; count it if it is bad and may be skipped.

        Raises:
            InputError: if it is bad and may not be skipped.
        """
        scale = float(np.asarray(getattr(self.model.optimizer, "dynamic_scale", 1.0)))
        reason, may_skip = None, hasattr(self.model, "skip_reason")
        if scale < LEAST_LOSS_SCALE:
            reason = f"the gradients are not finite at a loss scale of {scale:.0e}"
            may_skip = False
        elif may_skip:
            reason = self.model.skip_reason()
        elif not math.isfinite(loss):
            reason = f"the loss is {loss}"
        if reason is None:
            if may_skip:
                self.progress.in_a_row = 0
            return
        if not may_skip:
            raise self.diverged(reason)
        # The step changed no weights, so the state can be saved.
        self.model.reset_non_finite()
        self.progress.skipped += 1
        self.progress.in_a_row += 1
        advice = "on_nan=skip goes on without it"
        if self.config.on_nan == "skip":
            if self.progress.in_a_row < MOST_IN_A_ROW:
                tqdm.write(f"Skipped {self.last_step()}: {reason}.")
                return
            advice = (
                f"as {self.progress.in_a_row} batches in a row were skipped, it is not the data"
            )
        error = self.diverged(reason, advice)
        if self.progress.step < self.steps_of(self.progress.epoch):
            # Else the earlier state leads here again.
            self.progress.bad = str(error)
            self.save()
        raise error

    def check_weights(self):
        """Check that the weights and the optimizer's state are finite.

        The loss would show it only a step later, and after an epoch's last step there is none.

        Raises:
            InputError: if a variable is not finite.
        """
        for variable in self.variables.values():
            if not all_finite(variable):
                raise self.diverged(f"{variable.path} is not finite")

    def diverged(self, reason, advice="the same command leads here again"):
        """Save the last batch, and return the error for a training with non-finite numbers."""
        epoch, step = self.progress.epoch, self.progress.step
        self.run.save_bad_batch(self.batches.make(self.batches.plan(epoch), epoch, step - 1))
        kept = "nothing was saved before it"
        if self.run.state_path.exists():
            kept = f"{self.run.path} keeps the last good weights"
        return InputError(
            f"At {self.last_step()} {reason} ({kept}, and the batch is in "
            f"{self.run.path / BAD_BATCH}): {advice}; or start anew in another folder or by "
            "`overwrite`, with a lower learning_rate, a longer warm-up or another precision."
        )

    def last_step(self):
        """Return the last step in words."""
        return f"step {self.progress.step} of epoch {self.progress.epoch + 1}"

    def save(self):
        # All workers read the variables, though only one writes: each holds a part of the sums.
        sums = metric_names(self.model) if self.progress.step else {}
        sums |= self.log_variables()
        sums = {name: np.asarray(variable) for name, variable in sums.items()}
        self.run.save_state(self.variables, sums, vars(self.progress), self.fingerprints)


def lower_is_better(metric):
    """Return whether a metric is a loss or an error, by its name."""
    return metric.endswith(("loss", "error"))


def variable_names(model):
    """Return all variables that the training depends on by names that every process gives them.

    Args:
        model: a compiled `keras.Model`, its optimizer built.
    """
    metrics = {id(v) for v in model.metrics_variables}
    variables = [v for v in model.variables if id(v) not in metrics]
    return _by_stable_names([*variables, *model.optimizer.variables])


def metric_names(model):
    """Return the variables of a model's metrics by stable names, a dict."""
    return _by_stable_names(model.metrics_variables)


def _by_stable_names(variables):
    """Return {path: variable}, without the numbers in paths that Keras counts through a process.

    Variables whose paths differ by such numbers alone ("dense_7", "dense_8") are told apart by
    their order. The order alone would exchange variables of a model whose layers changed places.
    """
    seen, named = collections.Counter(), {}
    for variable in {id(v): v for v in variables}.values():
        name = re.sub(r"_\d+(?=[/_]|$)", "", variable.path)
        named[f"{name}#{seen[name]}" if seen[name] else name] = variable
        seen[name] += 1
    return named
