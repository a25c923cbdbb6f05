"""Training loop around Keras' `fit`: progress, early stopping, best weights, and exact resume."""

import contextlib
import dataclasses
import functools
import math
import signal
import threading

import keras
import numpy as np
import tensorflow as tf
from absl import logging
from tqdm import tqdm

from tfnlp.training.optimizer import averaged_weights
from tfnlp.training.run_folder import BAD_BATCH
from tfnlp.training.strategy import UnequalShares
from tfnlp.training.variable_names import metric_names, variable_names
from tfnlp.training.workers import (
    agreed,
    check_same,
    lost_workers,
    several_workers,
    shared_dataset,
    wait_for_all,
)
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar
from tfnlp.weighted_losses import CrossEntropy

# Number of consecutive bad batches at which the data is no longer blamed.
MOST_IN_A_ROW = 10
# Loss scale below which skipped steps are no longer blamed on the scale.
LEAST_LOSS_SCALE = 1e-4


class ClassifierLogits(UnequalShares, keras.Model):
    """Keras model from the inputs of a classifier to its logits."""


def compile_classifier(model, optimizer):
    """Return a compiled model from the inputs of a classifier to its logits.

    It shares every weight with `model`.
    """
    trained = ClassifierLogits(model.input, model.output["logits"])
    trained.compile(
        optimizer,
        loss=CrossEntropy(),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        jit_compile=False,
    )
    return trained


def fit(
    model,
    batches,
    config,
    run,
    save_best,
    dev=None,
    monitor="val_accuracy",
    evaluate=None,
    made_from=None,
    on_nan="stop",
    origin=None,
):
    """Train a compiled model, or resume a killed run of the same folder.

    A resumed run ends with the same weights as an uninterrupted one. The state holds weights,
    optimizer, dropout seeds and metrics, and the order of the data depends only on seed and epoch.
    Signals are handled on the main thread only.

    Args:
        model: a compiled `keras.Model`.
        batches: the `LengthBatches` to train on.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        save_best: function without arguments, called after each epoch that is the best so far.
        dev: the `LengthBatches` that Keras evaluates on after each epoch, or None.
        monitor: the metric that is highest in the best epoch; without it, each epoch counts as the
            best. An epoch with a non-finite value (NaN) is never the best, but the first epoch is
            always saved.
        evaluate: function without arguments, called after each epoch; returns a dict of further
            metrics.
        made_from: a dict of fingerprints (`tfnlp.training.fingerprints`) of further inputs that
            decide the result, by name, such as "train"; those of `batches` and `dev` are added.
        on_nan: "stop", or "skip" to continue without the update of a bad batch, for a model that
            skips such updates (`tfnlp.training.non_finite_steps`).
        origin: function from an epoch and a batch's number in it, both from 0, to a description of
            the batch's sources; None for none.

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
    if config.patience and (monitor is None or (dev is None and evaluate is None)):
        raise InputError(
            f"patience={config.patience} has no effect here, where the last epoch is kept and no "
            "score on dev is waited for; leave it out."
        )
    strategy = model.distribute_strategy
    with strategy.scope():
        model.optimizer.build(model.trainable_variables)
    made_from = {**(made_from or {}), "the encoded batches": batches.fingerprint()}
    if dev is not None:
        made_from["the encoded dev batches"] = dev.fingerprint()
    recorder = _Recorder(batches, config, run, save_best, monitor, evaluate, made_from)
    recorder.on_nan, recorder.origin = on_nan, origin
    recorder.set_model(model)
    with run.alone():
        recorder.restore()
        facts = {"flags": run.flags, "settings": dataclasses.asdict(config)}
        check_same(strategy, facts | {"data": made_from, "state": recorder.progress})
        if recorder.finished():
            logging.info("%s is complete; nothing to train.", run.path)
            return
        run.start()
        recorder.open()
        _train(model, batches, config, recorder, dev)
    if not recorder.finished():
        raise KeyboardInterrupt


def _train(model, batches, config, recorder, dev):
    """Run Keras' `fit` until the training is finished or a signal requests a stop."""
    strategy = model.distribute_strategy
    several = several_workers(strategy)
    with (
        contextlib.closing(recorder),
        _asked_to_stop_by_signals(recorder),
        contextlib.suppress(_Stopped),
        lost_workers(strategy),
        _errors_of(batches, dev),
    ):
        dev_data = None
        if dev is not None:
            dev_data = shared_dataset(strategy, dev.dataset(), len(dev))

        @functools.cache  # with several workers a new dataset would retrace the steps
        def data(skip):
            found = batches.dataset(lambda: recorder.progress["epoch"], skip)
            return shared_dataset(strategy, found, len(batches) - skip)

        while not recorder.finished():
            start, skip = recorder.progress["epoch"], recorder.progress["step"]
            steps_on_dev = len(dev) if several and dev is not None else None
            if skip == len(batches):
                recorder.finish_epoch(dev_data, steps_on_dev)
                continue
            model.fit(
                data(skip),
                # The rest of an interrupted epoch needs its own `fit`, since Keras assumes as
                # many steps for every epoch. So does each epoch of several workers, whose
                # datasets Keras cannot count.
                epochs=start + 1 if skip or several else config.epochs,
                initial_epoch=start,
                steps_per_epoch=len(batches) - skip if several else None,
                validation_data=dev_data,
                validation_steps=steps_on_dev,
                callbacks=[recorder],
                shuffle=False,
                verbose=0,
            )
        wait_for_all(strategy)  # the chief has saved


@contextlib.contextmanager
def _errors_of(*sources):
    """Re-raise an InputError of batches that tf.data wrapped in an error of its own."""
    try:
        yield
    except tf.errors.OpError:
        for source in sources:
            if getattr(source, "error", None) is not None:
                raise source.error from None
        raise


class _Stopped(Exception):
    """Exception that leaves Keras' `fit` after a signal, once the state is saved."""


class _Recorder(keras.callbacks.Callback):
    """Callback that updates the run folder, shows progress, and stops the training."""

    on_nan, origin = "stop", None

    def __init__(self, batches, config, run, save_best, monitor, evaluate, made_from):
        super().__init__()
        self.batches = batches
        self.config = config
        self.run = run
        self.save_best = save_best
        self.monitor = monitor
        self.evaluate = evaluate
        self.made_from = made_from
        # `epoch` and `step` count finished ones; `step` is within the epoch.
        self.progress = {"epoch": 0, "step": 0, "best": None, "waited": 0, "stopped": False}
        self.signal = None
        self.variables = {}
        self.sums = {}

    def restore(self):
        """Load the state from the run folder, if there is one."""
        self.variables = variable_names(self.model)
        state = self.run.load_state(self.variables, self.made_from)
        if state is None:
            return
        self.progress, self.sums = state
        bad = self.progress.pop("bad", None)
        if bad and self.on_nan != "skip":
            raise InputError(bad)
        self.run.truncate_metrics(self.progress["epoch"])
        if not self.finished():
            logging.info(
                "Resuming %s after epoch %d, step %d.",
                self.run.path,
                self.progress["epoch"],
                self.progress["step"],
            )

    def finished(self):
        return self.progress["stopped"] or self.progress["epoch"] >= self.config.epochs

    def open(self):
        """Start the progress bar and the event writer."""
        steps = len(self.batches)
        done = self.progress["epoch"] * steps + self.progress["step"]
        self.bar = progress_bar(
            total=self.config.epochs * steps,
            initial=done,
            unit="step",
            disable=not self.run.writes,
        )
        self.events = tf.summary.create_noop_writer()
        if self.run.writes:
            self.events = tf.summary.create_file_writer(str(self.run.path / "events"))

    def on_test_begin(self, logs=None):
        self.tested = averaged_weights(self.model)
        self.tested.__enter__()

    def on_test_end(self, logs=None):
        self.tested.__exit__(None, None, None)

    def on_epoch_begin(self, epoch, logs=None):
        self.bar.set_description(f"epoch {epoch + 1}/{self.config.epochs}", refresh=False)

    def on_train_batch_end(self, batch, logs=None):
        if self.sums:
            # `fit` has reset the epoch's metric sums: add those of the killed run.
            for name, variable in metric_names(self.model).items():
                variable.assign_add(self.sums[name])
            self.sums = {}
        self.progress["step"] += 1
        self.look_for_bad_step(logs["loss"])
        whole = self.progress["step"] == len(self.batches)
        self.bar.update()
        if self.progress["step"] % 20 == 0:
            self.bar.set_postfix(loss=f"{logs['loss']:.4f}", refresh=False)
        stop = self.asked_to_stop()
        if stop or whole or self.progress["step"] % self.config.checkpoint_steps == 0:
            self.check_weights()
            if whole:  # keep the metrics, since the evaluation on dev may fail
                found = self.model.get_metrics_result()
                self.progress["logs"] = {key: float(value) for key, value in found.items()}
            self.save()
        if stop:
            raise _Stopped

    def asked_to_stop(self):
        """Return whether this or another worker received a signal."""
        return agreed(self.model.distribute_strategy, self.signal is not None)

    def finish_epoch(self, dev_data, steps):
        """Evaluate after an epoch whose steps are complete, and end it."""
        self.sums, logs = {}, dict(self.progress["logs"])
        if dev_data is not None:
            found = self.model.evaluate(
                dev_data, steps=steps, callbacks=[self], verbose=0, return_dict=True
            )
            logs |= {f"val_{key}": value for key, value in found.items()}
        self.on_epoch_end(self.progress["epoch"], logs)

    def on_epoch_end(self, epoch, logs=None):
        logs = {key: float(value) for key, value in logs.items()}
        if self.evaluate is not None:
            with averaged_weights(self.model):
                logs |= self.evaluate()
        self.progress |= {"epoch": epoch + 1, "step": 0}
        self.progress.pop("logs", None)
        if "skipped" in self.progress:
            logs["skipped_steps"] = self.progress["skipped"]
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        self.run.log({"epoch": epoch + 1, **logs})
        with self.events.as_default(step=epoch + 1):
            for key, value in logs.items():
                if math.isfinite(value):
                    tf.summary.scalar(key, value)
        self.events.flush()
        shown = ", ".join(f"{key} {value:.4f}" for key, value in logs.items() if "rate" not in key)
        if self.run.writes:
            tqdm.write(f"epoch {epoch + 1}: {shown}")
        score = logs.get(self.monitor)
        # A model counts as the best only once its compression is complete.
        compressor = getattr(self.model, "compressor", None)
        complete = compressor is None or compressor.complete(self.model.optimizer.iterations)
        if complete and self.is_best(score):
            self.progress |= {"best": score, "waited": 0}
            self.write_best()
        else:
            if epoch == 0:
                self.write_best()
            self.progress["waited"] += complete
            if self.config.patience and self.progress["waited"] >= self.config.patience:
                self.progress["stopped"] = True
                self.model.stop_training = True
        self.save()
        if not self.finished() and self.asked_to_stop():
            raise _Stopped

    def write_best(self):
        """Save the best weights, if this process writes."""
        if self.run.writes:
            with averaged_weights(self.model):
                self.save_best()

    def is_best(self, score):
        """Return whether an epoch with this score is the best so far; a tie is not."""
        if score is None:
            return True
        if not math.isfinite(score):
            logging.warning(
                "%s is %s after epoch %d, which does not count as the best.",
                self.monitor,
                score,
                self.progress["epoch"],
            )
            return False
        return self.progress["best"] is None or score > self.progress["best"]

    def look_for_bad_step(self, loss):
        """Check the last step; count it if it is bad and may be skipped.

        Raises:
            InputError: if it is bad and may not be skipped.
        """
        scale = getattr(self.model.optimizer, "dynamic_scale", None)
        if scale is not None and (scale := float(np.asarray(scale))) < LEAST_LOSS_SCALE:
            raise self.diverged(f"the gradients are not finite at a loss scale of {scale:.0e}")
        left_out = getattr(self.model, "left_out", None)
        if left_out is None:
            if not math.isfinite(loss):
                raise self.diverged(f"the loss is {loss}")
            return
        what = left_out()
        if what is None:
            self.progress["in_a_row"] = 0
            return
        # The step changed no weights, so the state can be saved.
        self.model.forget()
        skipped, in_a_row = (self.progress.get(key, 0) + 1 for key in ("skipped", "in_a_row"))
        self.progress |= {"skipped": skipped, "in_a_row": in_a_row}
        if self.on_nan == "skip" and in_a_row < MOST_IN_A_ROW:
            tqdm.write(f"Skipped {self.place()}: {what}.")
            return
        way = "on_nan=skip goes on without it"
        if self.on_nan == "skip":
            way = f"as {in_a_row} batches in a row were skipped, it is not the data"
        error = self.diverged(what, way)
        if self.progress["step"] < len(self.batches):  # else the earlier state leads here again
            self.progress["bad"] = str(error)
            self.save()
        raise error

    def check_weights(self):
        """Check that the weights and the optimizer's state are finite.

        The loss would show it only a step later, and after an epoch's last step there is none.

        Raises:
            InputError: if a variable is not finite.
        """
        for name, variable in self.variables.items():
            floating = keras.backend.is_float_dtype(variable.dtype)
            if floating and not np.isfinite(np.asarray(variable)).all():
                raise self.diverged(f"{name} is not finite")

    def diverged(self, what, way="the same command leads here again"):
        """Save the last batch, and return the error for a training with non-finite numbers."""
        epoch, step = self.progress["epoch"], self.progress["step"]
        batch = next(iter(self.batches.epoch(epoch, step - 1)))
        self.run.save_bad_batch(batch)
        kept = "nothing was saved before it"
        if self.run.state_path.exists():
            kept = f"{self.run.path} keeps the last good weights"
        return InputError(
            f"At {self.place()} {what} ({kept}, and the batch is in "
            f"{self.run.path / BAD_BATCH}): {way}; or start anew in another folder or by "
            "`overwrite`, with a lower learning_rate, a longer warm-up or another precision."
        )

    def place(self):
        """Return the last step and the sources of its batch, in words."""
        epoch, step = self.progress["epoch"], self.progress["step"]
        made_from = f" ({self.origin(epoch, step - 1)})" if self.origin else ""
        return f"step {step} of epoch {epoch + 1}{made_from}"

    def close(self):
        self.bar.close()
        self.events.close()

    def save(self):
        # All workers read the variables, though only one writes: each holds a part of the sums.
        found = metric_names(self.model) if self.progress["step"] else {}
        sums = {name: np.asarray(variable) for name, variable in found.items()}
        self.run.save_state(self.variables, sums, self.progress, self.made_from)


@contextlib.contextmanager
def _asked_to_stop_by_signals(recorder):
    """Let SIGINT and SIGTERM request a stop after the current step."""

    def ask(number, frame):
        recorder.signal = number
        tqdm.write("Stopping after this step; the state is being saved.")
        # A second signal takes effect at once.
        signal.signal(number, signal.SIG_DFL)

    # Python allows handlers only in the main thread.
    main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if main else ()
    previous = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            # None: the handler was not set from Python, which cannot restore it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
