"""Training of a translator, from pairs of texts to a finished run."""

import dataclasses
import math
import shutil
from collections.abc import Callable

from absl import logging

from tfnlp.checkpoints import average_folders, check_saves, load_model
from tfnlp.models import check_lengths, check_vocabulary, config_of
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.tasks.data_summary import summarise
from tfnlp.training.experiments.experiment import Experiment
from tfnlp.training.experiments.pretraining import Evaluator
from tfnlp.training.run.fingerprints import content_fingerprint
from tfnlp.training.run.run_report import TaskFacts, write_report
from tfnlp.training.step.optimizer import compile_model
from tfnlp.training.step.trainer import Pretrainer
from tfnlp.training.step.workers import wait_for_all
from tfnlp.utils.formatting import figure_name


@dataclasses.dataclass
class TranslatorTraining(Experiment):
    """The training of a translator, which keeps the epoch with the lowest perplexity on dev.

    `run.best` is the folder of that epoch; `run.averaged` that of the mean of the last epochs'
    weights (Vaswani et al. 2017, section 6.1), if requested, whose figures begin with
    "averaged_".

    Args:
        task: a `Translation`.
        model: with the head "sequence_to_sequence"; it ends with the last epoch's weights.
        tokenizer: of both languages, or a `MarianTokenizer` pair; saved in the run's folders.
        data: `Splits` of `ParallelTexts`; `max_length` counts the end token.
        config: a `TranslatorConfig`; of fewer epochs than `average_epochs` all are averaged.
        run: as in `Experiment`.
        sample: function from model and batches to a model of the same weights and the batches to
            fit it on, such as for scheduled sampling; None to use them unchanged.
        score: function from a model and a prefix to a dict of final figures; None for none.

    Raises:
        InputError: by `run_all`, if a text is too long and the task does not cut or skip it, the
            model cannot be saved as a folder, and as `fit`.
    """

    sample: Callable | None = None
    score: Callable | None = None

    monitor = "val_log_likelihood"

    def check(self):
        check_vocabulary(self.tokenizer, self.model)
        check_saves(self.model)

    def describe(self):
        return summarise(None, self.data.parts())

    def encode(self):
        settings = config_of(self.model), self.config.max_tokens, self.data.max_length
        orders = {"train": {"shuffle": True, "seed": self.config.seed}}
        batches = {
            name: self.task.batches(texts, self.tokenizer, *settings, **orders.get(name, {}))
            for name, texts in self.data.parts().items()
        }
        for split in batches.values():
            check_lengths(split, self.model)
        self.pairs = batches["train"]
        counts = len(self.pairs.sources), len(self.pairs), self.config.max_tokens
        share = 100 * self.pairs.padding_share()
        text = "%d pairs in %d batches of at most %d tokens, %.1f %% of them padding."
        logging.info(text, *counts, share)
        return batches

    def build(self):
        fitted = self.model
        if self.sample is not None:
            fitted, self.batches["train"] = self.sample(self.model, self.pairs)
        trainer = Pretrainer(self.task, fitted)
        compile_model(self.config, trainer, len(self.pairs))
        self._measure_split = self._measurer(self.model)
        return trainer

    def evaluate_dev(self):
        if self.config.average_epochs and self.run.writes:
            epoch = len(self.run.metrics()) + 1
            self.save(self._after(epoch))
            shutil.rmtree(self._after(epoch - self.config.average_epochs), ignore_errors=True)
        return super().evaluate_dev()

    def _after(self, epoch):
        """Return the folder of the weights after an epoch, counted from 1."""
        return self.run.path / "recent" / f"epoch_{epoch}"

    def measure(self, name):
        return self._measure_split(name)

    def _measurer(self, model):
        """Return a function that computes a model's metrics and perplexity on a split."""
        evaluate = Evaluator(self.task, model, self.batches["dev"].signature())

        def measure(name):
            metrics = evaluate(self.batches[name])
            # exp(-log-likelihood of a token)
            return metrics | {"perplexity": math.exp(min(-metrics["log_likelihood"], 700.0))}

        return measure

    def fingerprints(self):
        return {
            "model": content_fingerprint(config_of(self.model)),
            "the task": content_fingerprint(self.task),
            "the encoded dev batches": self.batches["dev"].fingerprint(),
        }

    def evaluate(self):
        """Return sizes, and the scores of the best epoch and of the mean of the weights."""
        epochs = len(self.run.metrics())
        figures = {
            "parameters": count_parameters(self.model),
            "pairs": len(self.pairs.sources),
            "epochs": epochs,
            "steps": min(epochs * len(self.pairs), self.config.total_steps(len(self.pairs))),
        }
        figures |= self._figures_of(load_model(self.run.best, self.task.head), "")
        if self.config.average_epochs:
            if self.run.writes:
                self._average(range(max(epochs - self.config.average_epochs, 0) + 1, epochs + 1))
            wait_for_all(self.trainer.distribute_strategy)
            averaged = load_model(self.run.averaged, self.task.head)
            figures |= self._figures_of(averaged, "averaged_")
        return figures

    def _average(self, epochs):
        """Write the mean of the models after some epochs, in place of an earlier one."""
        mean = self.run.path / "recent" / "mean"
        shutil.rmtree(mean, ignore_errors=True)
        average_folders([*map(self._after, epochs)], mean)
        shutil.rmtree(self.run.averaged, ignore_errors=True)
        mean.rename(self.run.averaged)

    def _figures_of(self, model, prefix):
        measure = self._measurer(model)
        devs = [name for name in self.batches if name.startswith("dev")]
        figures = {figure_name(dev, name): x for dev in devs for name, x in measure(dev).items()}
        if self.score is not None:
            figures |= self.score(model, prefix)
        return {f"{prefix}{name}": value for name, value in figures.items()}

    def report(self, figures):
        counts = {name: len(texts) for name, texts in self.data.parts().items()}
        write_report(
            self.run,
            figures,
            metric="perplexity",
            facts=TaskFacts(examples=counts, kept=self.kept()),
        )
