"""Fine-tuning of a model for a task, from examples to a finished run."""

import copy
import dataclasses
import functools
import gzip
import pathlib
from collections.abc import Callable

import numpy as np
from absl import logging

from tfnlp.checkpoints import (
    check_saves,
    load_model,
    read_head,
    read_labels,
    read_task_settings,
    save_model,
    unnamed_labels,
)
from tfnlp.checkpoints.lora_adapter import renew_head
from tfnlp.checkpoints.tensors import WEIGHTS
from tfnlp.corpora import warn_of_unknown
from tfnlp.models import check_lengths, scale_logits
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.tasks.confusion_matrix import only_answer
from tfnlp.tasks.data_summary import summarise
from tfnlp.tasks.mistakes import worst_mistakes
from tfnlp.text import Encodings, LengthBatches, load_tokenizer
from tfnlp.training.experiments.experiment import Experiment
from tfnlp.training.run.fingerprints import content_fingerprint
from tfnlp.training.run.inference import evaluator, predict_batches, predictor
from tfnlp.training.run.resumable_fit import lower_is_better
from tfnlp.training.run.run_report import TaskFacts, write_report
from tfnlp.training.step.adversarial import AdversarialRegularizer
from tfnlp.training.step.optimizer import compile_model
from tfnlp.training.step.trainer import FineTuner
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json
from tfnlp.utils.formatting import counted, figure_name


@dataclasses.dataclass
class FineTuning(Experiment):
    """The fine-tuning of a model for a task, which keeps and reports the best epoch.

    Args:
        task: see `tfnlp.tasks`; the best epoch has the best `task.monitor` on dev.
        model: with the task's head.
        data: `Splits` of the task's examples.
        tokenizer, config, run: as in `Experiment`.
        regularizer: as in `FineTuner`.
        compress: function from a model and the number of steps to a compressor, such as
            `distill.compression.PruningConfig.pruner`; None for none.

    Raises:
        InputError: by `run_all`, if the model cannot be saved as a folder, texts are too long for
            it, or all training examples have one label.
    """

    regularizer: AdversarialRegularizer | None = None
    compress: Callable | None = None

    # What to try where the model is no better than a baseline.
    ADVICE = "give more examples or epochs, or another learning rate or model"
    mistakes = ()  # of `worst_mistakes`, once evaluated

    @property
    def monitor(self):
        name = self.task.monitor
        return f"val_{self.trainer.task_loss if name == 'loss' else name}"

    def check(self):
        check_varied(self.task, self.data.train)
        check_saves(self.model)

    def describe(self):
        line, doubts = summarise(self.task, self.data.parts())
        return line, doubts + doubtful_head(self.model, self.task)

    def encode(self):
        batches = encode_splits(
            self.task, self.tokenizer, self.data.parts(), self.config, self.data.max_length
        )
        log_tokens(self.tokenizer, batches["train"])
        check_lengths(batches["train"], self.model)
        return batches

    def build(self):
        self.task.initialise_head(self.model, self.data.train)
        trainer = self.make_trainer()
        steps = len(self.batches["train"])
        if self.compress is not None:
            check_compresses(self.config)
            # The schedule is that of the epochs the run began with. Otherwise pruned weights would
            # grow back if a finished run gets more epochs.
            first_steps = self.config.max_steps
            first_steps = first_steps or self.run.first_epochs(self.config.epochs) * steps
            trainer.compressor = self.compress(self.model, first_steps)
        compile_model(self.config, trainer, steps)
        return trainer

    def make_trainer(self):
        """Return the `Trainer` to compile."""
        return FineTuner(self.model, self.task, self.regularizer)

    @functools.cached_property
    def _run_on_dev(self):
        return evaluator(
            self.task.batch_model(self.model), self.task, self.batches["dev"].signature()
        )

    def measure(self, name):
        outputs, loss = self._run_on_dev(self.batches[name])
        examples = self.data.parts()[name]
        if name == "dev":
            self.task.tune(examples, outputs)
        scores = self.task.score(examples, self.batches[name].encodings, outputs)
        return {self.trainer.task_loss: loss, **scores}

    def save(self, folder):
        self._save(self.model, folder)

    def _save(self, model, folder, **settings):
        settings |= {"max_length": self.data.max_length} | (self.task.settings or {})
        if pathlib.Path(folder) != self.run.best:  # a model within an epoch is not seen on dev
            settings = {k: v for k, v in settings.items() if k not in self.task.tuned_settings}
        if getattr(self.data.train, "pairs", None):
            settings["pairs"] = True
        save_model(model, folder, self.task.label_names, self.tokenizer, settings)

    def fingerprints(self):
        inputs = {
            "train": [self.data.train, self.task.label_names],
            "dev": self.data.dev,
            "model": self.model.text_config,
        }
        if settings := self.task.decisive():
            inputs["settings of the task"] = settings
        if self.trainer.compressor is not None:
            inputs["the compression"] = self.trainer.compressor.config
        return {name: content_fingerprint(value) for name, value in inputs.items()}

    def evaluate(self):
        """Return scores of the best epoch, baselines and the figures of a compressor."""
        tunes = self.task.tuned_settings or self.task.calibrated
        head, classes = self.task.kind.head, self.task.num_classes
        options = {"block_size": self.model.block_size}
        options["dtype"] = "float32" if tunes else None  # as folders are run
        best = load_model(self.run.best, head, classes, **options)
        calibration = self._tune(best) if tunes else {}
        splits, outputs = self.data.parts(), predict_splits(best, self.task, self.batches)
        dev = self.data.dev, self.batches["dev"].encodings, outputs["dev"]
        self.mistakes = worst_mistakes(self.task, *dev)
        return {
            **calibration,
            "parameters": count_parameters(best),
            **score_splits(self.task, splits, self.batches, outputs),
            **baseline_scores(self.task, splits),
            **self.task.linear_figures(splits),
            **compression_figures(self.trainer.compressor, best, self.run),
        }

    def _tune(self, best):
        """Tune and calibrate the best epoch's model on dev, and save it again.

        Returns the figures of the calibration.
        """
        calibrated = read_task_settings(self.run.best).get("temperature")
        if calibrated:  # at an earlier end of this run
            scale_logits(best, calibrated)
        outputs = predictor(best, self.task.kind.reads)(self.batches["dev"])
        figures = {}
        if self.task.calibrated:
            outputs, figures = self.task.calibrate(best, self.data.dev, outputs)
        self.task.tune(self.data.dev, outputs)
        if self.run.writes:
            # By which a later end of this run knows the logits as they were learned.
            kept = {k: v for k, v in figures.items() if k == "temperature"}
            self._save(best, self.run.best, **kept)
            renew_head(self.run.best)
        return figures

    def report(self, figures):
        warn_of_baseline(figures, f"dev_{self.task.monitor}", self.ADVICE)
        counts = {name: len(examples) for name, examples in self.data.parts().items()}
        facts = TaskFacts(self.task.label_names, counts, self.mistakes, self.kept())
        metric = self.task.monitor
        metric = None if metric == "loss" else metric  # which has its curve
        write_report(self.run, figures, metric, facts=facts)


def encode_splits(task, tokenizer, splits, config, max_length):
    """Return batches of the splits of a task's data.

    The number of truncated texts of each is logged.

    Args:
        task: see `tfnlp.tasks`.
        tokenizer: of the model.
        splits: {name: examples}; "train" is shuffled.
        config: a `TrainingConfig`.
        max_length: the longest input in tokens.

    Returns:
        {name: `LengthBatches`}.
    """
    batches = {}
    for name, examples in splits.items():
        options = {"batch_size": config.batch_size, "seed": config.seed}
        if name == "train":
            options["shuffle"] = True
            options["fixed_length"] = max_length if config.fixed_length else None
        batches[name] = encode_batches(task, tokenizer, examples, max_length, **options)
        rows = Encodings.from_list(batches[name].encodings)
        if rows.examples is None and rows.truncated.any():
            sizes = rows.truncated.sum(), len(rows.truncated), name, max_length
            logging.info("%d of %d texts of %s were cut to max_length=%d tokens.", *sizes)
    return batches


def encode_batches(task, tokenizer, examples, max_length, batch_size, **options):
    """Return `LengthBatches` of a task's examples.

    Args:
        task, tokenizer, max_length: as in `encode_splits`.
        examples: of the task.
        batch_size: B.
        options: as in `LengthBatches`, such as `shuffle` and `seed`.
    """
    encodings, labels = task.encode(tokenizer, examples, max_length)
    options["pad_token_id"] = tokenizer.pad_token_id
    return LengthBatches(encodings, batch_size, labels, **options)


def log_tokens(tokenizer, batches):
    """Log the shares of padding and of tokens that are unknown to a tokenizer in batches."""
    padding, unknown = 100 * batches.padding_share(), unknown_share(tokenizer, batches.encodings)
    logging.info(
        "%s of `train`, %.1f %% of their tokens padding and %.1f %% unknown to the vocabulary.",
        counted(len(batches), "batch", "batches"),
        padding,
        100 * unknown,
    )
    warn_of_unknown(unknown)


def unknown_share(tokenizer, encodings):
    """Return the share of a text's tokens that a tokenizer has as unknown."""
    unknown = getattr(tokenizer, "unknown_token_id", None)
    token_ids = Encodings.from_list(encodings).token_ids
    special = [i for i in tokenizer.special_token_ids if i != unknown]
    of_text = token_ids[~np.isin(token_ids, special)]
    return 0.0 if unknown is None or not len(of_text) else float(np.mean(of_text == unknown))


def doubtful_head(model, task):
    """Return a sentence if a model's head was trained with other names of its classes; a list."""
    folder, names = model.checkpoint, [*map(str, task.label_names or [])]
    if not folder or read_head(folder) != task.kind.head:
        return []
    stored, unnamed = read_labels(folder), unnamed_labels(len(names))
    if stored in (None, unnamed, names) or len(stored) != len(names):
        return []
    return [
        f"The head of {folder} has the labels {', '.join(stored)}, and those of `train` in the "
        f"order of their classes are {', '.join(names)}; if they are the same, give `labels` in "
        "the order of the head."
    ]


def check_varied(task, train):
    """Raise an InputError if all labels or tags of the training examples are one."""
    if getattr(train, "probabilities", None) is not None:
        return  # which differ where one label is always the most probable
    labels = {*task.answers(train, [])[0]}
    if len(labels) == 1 and task.label_names:  # others are places
        raise InputError(
            f"All examples of `train` have the label {labels.pop()!r}, so that there is nothing "
            "to tell apart; give examples of others too."
        )


def check_compresses(config):
    """Raise an InputError for what a compressor beside it would undo."""
    if config.lora_rank:
        raise InputError(
            f"lora_rank={config.lora_rank} keeps the kernels as they are, so that compression "
            "cannot change them; compress in a training of the merged model."
        )
    if config.freeze_layers:
        raise InputError(
            f"freeze_layers={config.freeze_layers} keeps blocks as they are, but compression "
            "changes those of all; leave out one."
        )
    if config.ema_decay:
        raise InputError(
            f"ema_decay={config.ema_decay} does not go with compression: the average of weights "
            "that become zero, or clusters, one after the other has neither; leave out one."
        )


def predict_splits(model, task, batches):
    """Return {name: a model's outputs} of all splits but "train"."""
    predict = predictor(task.batch_model(model), task.kind.reads)
    return {name: predict(split) for name, split in batches.items() if name != "train"}


def score_splits(task, splits, batches, outputs):
    """Return the scores of the outputs of `predict_splits`, a dict of figures.

    If all examples of a split get one answer though their labels differ, that answer is a figure
    too.
    """
    figures, task = {}, copy.copy(task)  # what is chosen on dev is theirs, such as a teacher's
    for name, of_split in outputs.items():
        examples = splits[name]
        if name == "dev":
            task.tune(examples, of_split)
        predictions = task.decode(examples, batches[name].encodings, of_split)
        scores = task.score_predictions(examples, predictions)
        scores |= task.score_outputs(examples, of_split)
        figures |= {figure_name(name, key): value for key, value in scores.items()}
        answer = only_answer(*task.answers(examples, predictions))
        if answer is not None:
            figures[figure_name(name, "only_answer")] = answer
    return figures


def baseline_scores(task, splits):
    """Return the scores of the majority class, or the mean, of each split but "train"."""
    return {
        figure_name(name, f"baseline_{key}"): value
        for name, examples in splits.items()
        if name != "train"
        for key, value in task.baseline(examples).items()
    }


def warn_of_baseline(figures, name, advice):
    """Warn if a score on dev is no better than that of the baseline.

    Args:
        figures: a dict of figures.
        name: of the score, such as "dev_accuracy" or "teacher_dev_accuracy".
        advice: what to do.
    """
    _, _, of_dev = name.rpartition("dev_")
    score, baseline = figures.get(name), figures.get(f"dev_baseline_{of_dev}")
    if None in (score, baseline) or "dev_coverage" in figures:
        return
    if score >= baseline if lower_is_better(name) else score <= baseline:
        message = "%s is %.4f, no better than the baseline's %.4f: %s."
        logging.warning(message, name, score, baseline, advice)


def compression_figures(compressor, best, run):
    """Return the figures of a compressor, or None, and the best epoch's compressed size."""
    if compressor is None:
        return {}
    size = len(gzip.compress((run.best / WEIGHTS).read_bytes()))
    return compressor.figures(best) | {"compressed_bytes": size}


def write_n_best(task, run_folder, examples, max_length, count=5, block_size=None):
    """Write a run's best answers to each question to its n_best.json.

    Args:
        task: a `QuestionAnswering`.
        run_folder: the folder of the run, with the fine-tuned model in `best`.
        examples: `Questions`.
        max_length: the maximum input length in tokens.
        count: the number of answers for each question.
        block_size: as in `load_model`.
    """
    best = pathlib.Path(run_folder) / "best"
    tokenizer = load_tokenizer(best)
    batches = encode_batches(task, tokenizer, examples, max_length, 32)
    model = load_model(best, task.kind.head, block_size=block_size)
    outputs = predict_batches(model, batches, task.kind.reads)
    answers = task.n_best(examples, batches.encodings, outputs, count)
    write_json(
        pathlib.Path(run_folder) / "n_best.json",
        {
            i: [dataclasses.asdict(answer) for answer in best_of_question]
            for i, best_of_question in zip(examples.ids, answers, strict=True)
        },
    )
