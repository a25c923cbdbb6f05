"""Pretraining for an objective, from a corpus to a finished run."""

import dataclasses
import functools
import hashlib
import math

import tensorflow as tf
from absl import logging

from tfnlp.checkpoints import check_saves, load_model, read_config, save_model
from tfnlp.functional.weighted_losses import RecordedSums, means_by
from tfnlp.models import build_model, check_lengths, check_vocabulary
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.text.batching.epoch_batches import EpochBatches
from tfnlp.training.experiments.experiment import Experiment
from tfnlp.training.run.fingerprints import content_fingerprint
from tfnlp.training.run.run_folder import TIMES
from tfnlp.training.run.run_report import write_report
from tfnlp.training.step.optimizer import compile_model
from tfnlp.training.step.trainer import Pretrainer, weighted_sum
from tfnlp.utils.errors import InputError
from tfnlp.utils.formatting import counted


@dataclasses.dataclass
class Pretraining(Experiment):
    """The pretraining of one or several models for an objective; the last epoch is kept.

    `run.best` is the folder of the first model; each further one has a folder of its name beside
    it, and within the folder of a kept checkpoint.

    Args:
        task: an objective, see `tfnlp.objectives`.
        model: {name: `TextModel`}, from `start_models`, all with one tokenizer.
        data: `Splits` of corpora, see `tfnlp.objectives.Corpus`; dev may be None.
        config: a `PretrainingConfig`.
        tokenizer, run: as in `Experiment`.
        task_settings: a dict of settings of the corpora, such as `max_length` and `documents`,
            which `save_model` writes and `evaluate_lm` follows; None for none.
        pooler: the result of `read_pooler` for the folder that the first model started from, kept
            if the objective trains none; None for none.

    Raises:
        InputError: by `run_all`, if a model does not fit objective, tokenizer or corpora, or
            cannot be saved as a folder; if dev has no token to score; and as `fit`.
    """

    task_settings: dict | None = None
    pooler: dict | None = None

    @property
    def first_model(self):
        return next(iter(self.model.values()))

    def check(self):
        for model in self.model.values():
            check_vocabulary(self.tokenizer, model)
            check_saves(model)
        if self.config.keep_best and self.data.dev is None:
            raise InputError(
                f"keep_best={self.config.keep_best} needs a `dev`, whose loss says which epochs "
                "are the best; give one, or `keep_every`."
            )
        if self.task.memory and self.config.accumulation_steps > 1:
            raise InputError(
                f"accumulation_steps={self.config.accumulation_steps} does not go with a memory, "
                "whose lanes continue from batch to batch; give a smaller batch_size instead."
            )

    def encode(self):
        sizes = self.config.batch_size, self.data.max_length
        batches = {
            name: self.task.batches(
                corpus, self.tokenizer, *sizes, seed=self.config.seed, shuffle=name == "train"
            )
            for name, corpus in self.data.parts().items()
        }
        if self.config.fixed_length:  # token streams have one length anyway
            batches["train"].fixed_length = self.data.max_length
        for model in self.model.values():
            check_lengths(batches["train"], model)
        logging.info(
            "%s of %s in %s.",
            counted(len(batches["train"].lengths), "text"),
            counted(batches["train"].lengths.sum(), "token"),
            counted(len(batches["train"]), "batch", "batches"),
        )
        self.passes = batches["train"]
        if self.config.steps_per_epoch:
            batches["train"] = FixedStepEpochs(self.passes, self.config.steps_per_epoch)
        batches["train"].processes = self.config.loader_processes
        return batches

    def build(self):
        self.task.initialise_head(self.first_model, self.passes)
        models = self.model if len(self.model) > 1 else self.first_model
        lanes = {"batch_size": self.config.batch_size} if self.task.memory else {}
        trainer = Pretrainer(self.task, self.task.trained(models, **lanes))
        compile_model(self.config, trainer, len(self.batches["train"]))
        devs = {name: x for name, x in self.batches.items() if name.startswith("dev")}
        if devs:
            self._evaluator = Evaluator(self.task, trainer.model, devs["dev"].signature())
            for name, dev in devs.items():
                self._evaluator.check(dev, name)
        return trainer

    def measure(self, name):
        metrics = self._evaluator(self.batches[name])
        return metrics | {
            name.replace("log_likelihood", "perplexity"): math.exp(min(-value, 700.0))
            for name, value in metrics.items()
            if name.endswith("log_likelihood")
        }

    def save(self, folder):
        beside = self.run.path if folder == self.run.best else folder
        for name, model in self.model.items():
            is_first = model is self.first_model
            save_model(
                model,
                folder if is_first else beside / name,
                tokenizer=self.tokenizer,
                task_settings=self.task_settings,
                pooler=self.pooler if is_first else None,
            )

    def fingerprints(self):
        configs = [model.text_config for model in self.model.values()]
        fingerprints = {
            "model": content_fingerprint(configs),
            "the objective": content_fingerprint([type(self.task).__name__, self.task]),
        }
        if "dev" in self.batches:
            fingerprints["the encoded dev batches"] = self.batches["dev"].fingerprint()
        return fingerprints

    def evaluate(self):
        """Return model and data sizes, and the metrics of the last epoch."""
        sizes = {name: count_parameters(model) for name, model in self.model.items()}
        first = sizes.pop(next(iter(sizes)))
        last = self.run.metrics()[-1]
        return {
            "parameters": first,
            **{f"{name}_parameters": size for name, size in sizes.items()},
            "texts": len(self.passes.lengths),
            "tokens": int(self.passes.lengths.sum()),
            **{k: v for k, v in last.items() if k not in ("epoch", *TIMES, "learning_rate")},
            "steps": self.config.total_steps(len(self.batches["train"])),
        }

    def report(self, figures):
        scores = [
            name for name in figures if name.startswith("val_") and not name.endswith("loss")
        ]
        metric = scores[0].removeprefix("val_") if scores else None
        write_report(self.run, figures, metric=metric, epoch="last")


class Evaluator:
    """Evaluation of a model on batches; its graph is traced once.

    Args:
        objective: see `tfnlp.objectives`.
        model: the model that its method `trained` returns.
        signature: of the batches.

    Call arguments:
        batches: have the method `epoch`.

    Returns:
        A dict: the objective's losses, means over the entries of all batches, such as predicted
        tokens; `loss`, their weighted sum; and its scores, means over the scored entries.
    """

    def __init__(self, objective, model, signature):
        self.objective = objective

        @tf.function(input_signature=list(signature))
        def measure(inputs, labels):
            outputs = model(inputs, training=False)
            with means_by(RecordedSums()) as recorder:
                losses = objective.losses(labels, outputs)
            sums = {name: recorder.sum_and_weight(loss) for name, loss in losses.items()}
            return sums, objective.scores(labels, outputs)

        self._measure = measure

    def check(self, batches, split):
        """Check that each loss has an entry, reading only as many batches as needed.

        Raises:
            InputError: if a loss has none; it names the `split`.
        """
        missing = set(self.objective.loss_weights)
        for inputs, labels in batches.epoch():
            losses, _ = self._measure(inputs, labels)
            missing -= {name for name, (_, weight) in losses.items() if float(weight) > 0}
            if not missing:
                return
        raise InputError(
            f"`{split}` has no token to score, such as one that could be masked; give more text, "
            "or text that the tokenizer knows."
        )

    def __call__(self, batches):
        sums = {}
        for inputs, labels in batches.epoch():
            losses, scores = self._measure(inputs, labels)
            for name, (total, weight) in (losses | scores).items():
                old_total, old_weight = sums.get(name, (0.0, 0.0))
                sums[name] = old_total + float(total), old_weight + float(weight)
        means = {name: total / weight for name, (total, weight) in sums.items() if weight}
        losses = {name: means[name] for name in self.objective.loss_weights}
        if len(losses) == 1:  # a loss alone is the whole loss
            means.pop(*losses)
        return {"loss": weighted_sum(losses, self.objective.loss_weights), **means}


def start_models(objective, config, folder=None, generator=None, **options):
    """Return the initial models of an objective.

    Args:
        objective: see `tfnlp.objectives`.
        config: of the model, or of the first of several.
        folder: of the initial weights; its config may differ from `config` only in the length of a
            memory. Random weights where None.
        generator: folder of the generator trained with it, for an objective with a generator.
            Where None, the generator has random weights except for the tables of `folder`.
        options: as in `build_model`, such as `block_size`.

    Returns:
        {name: `TextModel`}, as `Pretraining` takes them.

    Raises:
        InputError: if the models of two folders were not trained together, and as `load_model`.
    """
    if objective.packed:
        options["packed"] = True
    if hasattr(objective, "build"):
        sources = {"discriminator": folder, "generator": generator}
        heads = {"discriminator": objective.head, "generator": "masked_lm"}
        loaded = {name: load_model(path, heads[name]) for name, path in sources.items() if path}
        return objective.build(config, **loaded, **options)
    if objective.memory:
        options["memory"] = True
    if folder and read_config(folder) == config:
        return {"model": load_model(folder, objective.head, **options)}
    model = build_model(config, objective.head, **options)
    if folder:  # a memory has no weights
        model.set_weights(load_model(folder, objective.head).get_weights())
    return {"model": model}


class FixedStepEpochs(EpochBatches):
    """Batches in epochs of a fixed number of steps, continued across passes over the data.

    Args:
        batches: `EpochBatches`.
        steps: of an epoch.
    """

    def __init__(self, batches, steps):
        self.batches = batches
        self.steps = steps
        self.lengths = batches.lengths

    def __len__(self):
        return self.steps

    def plan(self, epoch):
        """Return the function that plans each pass once."""
        return functools.lru_cache(1)(self.batches.plan)

    def make(self, plan, epoch, number):
        passes, number = divmod(epoch * self.steps + number, len(self.batches))
        return self.batches.make(plan(passes), passes, number)

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch."""
        return self.batches.signature()

    def fingerprint(self):
        """Return a SHA-256 of everything that decides the batches of every epoch."""
        return hashlib.sha256(f"{self.batches.fingerprint()} {self.steps}".encode()).hexdigest()
