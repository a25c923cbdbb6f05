"""One training from data to a finished run folder: encode, build, fit, evaluate, report."""

import abc
import dataclasses

import keras
import tensorflow as tf
from absl import logging

from tfnlp.checkpoints import save_model
from tfnlp.training.run.resumable_fit import fit, lower_is_better
from tfnlp.training.run.run_folder import RunFolder
from tfnlp.training.run.trackers import log_scores
from tfnlp.training.run.training_config import TrainingConfig
from tfnlp.utils.formatting import counted, figure_name

# The learning rate above which no optimizer here is known to learn.
HIGHEST_RATE = 0.1


@dataclasses.dataclass(frozen=True)
class Splits:
    """Data of a training.

    Args:
        train: examples, pairs of texts or a corpus to train on, as the task or objective reads it.
        dev: the same to evaluate on after each epoch; None where no score is needed.
        max_length: the most tokens of a text.
        test: the same to score the finished model on; None for none.
        further_dev: {name: the same} to evaluate on after each epoch too, which select nothing.
    """

    train: object
    dev: object
    max_length: int
    test: object = None
    further_dev: dict = dataclasses.field(default_factory=dict)

    def parts(self):
        """Return {name: data} of the splits that are not None; "dev_NAME" of a further dev set."""
        splits = {"train": self.train, "dev": self.dev}
        splits |= {f"dev_{name}": data for name, data in self.further_dev.items()}
        splits["test"] = self.test
        return {name: data for name, data in splits.items() if data is not None}

    @classmethod
    def from_parts(cls, parts, max_length):
        """Return the splits whose `parts` these are."""
        devs = {name: data for name, data in parts.items() if name.startswith("dev_")}
        further_dev = {name.removeprefix("dev_"): data for name, data in devs.items()}
        return cls(parts["train"], parts.get("dev"), max_length, parts.get("test"), further_dev)


@dataclasses.dataclass
class Experiment(abc.ABC):
    """A training, which a killed process resumes from its run folder with the same weights.

    `run_all` is the whole of it. Children are configurations: `FineTuning`, `Pretraining`,
    `TranslatorTraining`. A further kind of training, such as a distillation for a task, is a child
    of the nearest of them. It adds its fields (a teacher, terms) and overrides few methods:
    `build` returns a `Trainer` whose `compute_loss` is its loss, `encode` adds what that reads to
    the batches, `fingerprints` adds its further inputs, and `evaluate` its figures.

    Args:
        task: see `tfnlp.tasks`, or an objective, see `tfnlp.objectives`.
        model: the model to train and save, built in the scope of the strategy to train under.
        tokenizer: the model's.
        data: `Splits`.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.

    Attributes:
        batches: {"train": batches, ...}, the result of `encode`.
        trainer: the compiled `Trainer` that Keras fits, the result of `build`.
        monitor: name of the logged metric that is highest, of a loss or an error lowest, in the
            best epoch; None to keep the last epoch.
        best_epoch: the number of that epoch, after `fit`; None where the last is kept.
    """

    task: object
    model: object
    tokenizer: object
    data: Splits
    config: TrainingConfig
    run: RunFolder

    monitor = None
    best_epoch = None

    def run_all(self):
        """Run the whole training; return a dict of its figures."""
        self.check()
        line, doubts = self.describe()
        start = f"{line}; training" if line else "Training"
        logging.info("%s on %s.", start, describe_devices(self.model))
        for sentence in doubts + doubtful_rate(self.config.learning_rate):
            logging.warning("%s", sentence)
        self.batches = self.encode()
        self.train()
        figures = self.evaluate()
        self.report(figures)
        log_scores(self.run, self.config, figures)
        return figures

    @abc.abstractmethod
    def check(self):
        """Raise an InputError before long work if the data or the model does not fit."""

    def describe(self):
        """Return what the log says of the data before long work: a line, and a list of doubts."""
        return "", []

    @abc.abstractmethod
    def encode(self):
        """Return {name: batches} of the splits."""

    @abc.abstractmethod
    def build(self):
        """Return the `Trainer` of the model, compiled for the batches."""

    def train(self):
        """Build the trainer and fit it."""
        self.trainer = self.build()
        self.fit()

    def fit(self):
        """Train, or resume; after each epoch evaluate on dev and save the model if it is best."""
        self.best_epoch = fit(
            self.trainer,
            self.batches["train"],
            self.config,
            self.run,
            self.save,
            monitor=self.monitor,
            evaluate=self.evaluate_dev,
            fingerprints=self.fingerprints(),
        )

    def evaluate_dev(self):
        """Return the metrics on dev after an epoch: "val_loss"; "val_NAME/loss" of others."""
        return {
            figure_name(name.replace("dev", "val", 1), key): value
            for name in self.batches
            if name.startswith("dev")
            for key, value in self.measure(name).items()
        }

    def measure(self, name):
        """Return the metrics of the model on a split, such as "dev"; by default none."""
        return {}

    def save(self, folder):
        """Save the model in a folder, such as `run.best`."""
        save_model(self.model, folder, tokenizer=self.tokenizer)

    @abc.abstractmethod
    def fingerprints(self):
        """Return {name: fingerprint} of the inputs, beside the batches, that decide the result."""

    @abc.abstractmethod
    def evaluate(self):
        """Return the figures of the finished training, a dict."""

    def kept(self):
        """Return which epoch is kept, and by which score, a phrase; "" of the last."""
        if self.best_epoch is None:
            return ""
        extreme = "lowest" if lower_is_better(self.monitor) else "highest"
        return f"{self.best_epoch} of {len(self.run.metrics())}, by the {extreme} {self.monitor}"

    @abc.abstractmethod
    def report(self, figures):
        """Write the figures, the curves and the model card to the run folder."""


def describe_devices(models):
    """Return the devices and the precision of a training of a model, or of {name: model}."""
    model, *_ = keras.tree.flatten(models)
    device = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    devices = counted(model.distribute_strategy.num_replicas_in_sync, device)
    return f"{devices} in {model.dtype_policy.name}"


def doubtful_rate(rate):
    """Return a list of a sentence on a learning rate by which next to nothing is learned."""
    if rate == 0:
        return ["learning_rate=0 changes no weight: nothing is learned."]
    if rate > HIGHEST_RATE:
        return [f"learning_rate={rate:g} is too high to learn by; 1e-5 to 1e-2 are usual."]
    return []
