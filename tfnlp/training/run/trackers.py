"""Trackers that a run's figures go to beside metrics.jsonl: TensorBoard, MLflow, and W&B."""

import contextlib
import dataclasses
import math
import numbers

import tensorflow as tf

from tfnlp.training.run.run_folder import TRACKED
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json


@contextlib.contextmanager
def open_trackers(run, config):
    """Yield a function that logs figures to the trackers of `config.log_to`.

    Its arguments are the `axis`, "epoch", "step" or "final", the place on it, and a dict of
    figures. Those of steps are called "steps/NAME"; TensorBoard has no final ones. Figures that
    are no finite numbers are left out.

    Args:
        run: the `RunFolder`. MLflow and W&B name their run as it, and its flags and the fields of
            `config` are their parameters.
        config: a `TrainingConfig`.

    Raises:
        InputError: if MLflow or W&B raises an error of its own.
    """
    with contextlib.ExitStack() as stack:
        names = config.log_to if run.writes else ()
        logs = [stack.enter_context(_TRACKERS[name](run, config)) for name in names]

        def log(axis, place, figures):
            prefix = "steps/" if axis == "step" else ""
            finite = {prefix + k: v for k, v in figures.items() if _is_number(v)}
            for write in logs:
                write(axis, place, finite)

        yield log


def log_scores(run, config, figures):
    """Log the figures of a finished training, such as its scores, to MLflow and W&B."""
    others = tuple(name for name in config.log_to if name != "tensorboard")
    with open_trackers(run, dataclasses.replace(config, log_to=others)) as log:
        log("final", None, figures)


@contextlib.contextmanager
def _tensorboard(run, config):
    writer = tf.summary.create_file_writer(str(run.path / "events"))

    def log(axis, place, figures):
        with writer.as_default(step=place):
            for name, value in figures.items():
                tf.summary.scalar(name, value)
        if axis == "epoch":
            writer.flush()

    try:
        yield log
    finally:
        writer.close()


@contextlib.contextmanager
def _mlflow(run, config):
    import mlflow

    with _named("mlflow", mlflow.exceptions.MlflowException):
        known = _tracked(run).get("mlflow")
        with _named("mlflow", ImportError):  # of a store that mlflow-skinny lacks
            # Nested, as a notebook may have a run of its own that is active.
            tracked = mlflow.start_run(known, run_name=run.path.name, nested=True)
        with tracked:
            if known is None:
                mlflow.log_params(_parameters(run, config))
                _keep(run, mlflow=tracked.info.run_id)
            yield lambda axis, place, figures: mlflow.log_metrics(figures, step=place)


@contextlib.contextmanager
def _wandb(run, config):
    import wandb

    with _named("wandb", wandb.Error):
        known = _tracked(run).get("wandb")
        with wandb.init(
            id=known,
            name=run.path.name,
            config=None if known else _parameters(run, config),
            resume="allow" if known else None,
            reinit="create_new",
        ) as tracked:
            _keep(run, wandb=tracked.id)

            def log(axis, place, figures):
                if axis == "final":
                    tracked.summary.update(figures)
                    return
                for name in figures:
                    tracked.define_metric(name, step_metric=axis)
                tracked.log({**figures, axis: place})

            yield log


_TRACKERS = {"tensorboard": _tensorboard, "mlflow": _mlflow, "wandb": _wandb}


@contextlib.contextmanager
def _named(name, *errors):
    """Raise an InputError that names the tracker in place of its errors."""
    try:
        yield
    except errors as e:
        raise InputError(f"log_to={name} fails ({' '.join(str(e).split())}).") from e


def _parameters(run, config):
    return {**dataclasses.asdict(config), **run.flags}


def _tracked(run):
    path = run.path / TRACKED
    return read_json(path) if path.exists() else {}


def _keep(run, **ids):
    write_json(run.path / TRACKED, _tracked(run) | ids)


def _is_number(value):
    return isinstance(value, numbers.Real) and math.isfinite(value)
