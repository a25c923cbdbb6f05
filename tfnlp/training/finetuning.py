"""Fine-tuning of a model for a task, from examples to a finished run."""

import gzip

import keras
from absl import logging

from tfnlp.checkpoints import check_saves, load_model, save_model
from tfnlp.checkpoints.tensors import WEIGHTS
from tfnlp.models import check_lengths
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.tasks.confusion_matrix import only_answer
from tfnlp.text import Encodings, LengthBatches
from tfnlp.training.fingerprints import content_fingerprint
from tfnlp.training.inference import evaluator, predictor
from tfnlp.training.optimizer import compile_model
from tfnlp.training.resumable_fit import fit
from tfnlp.training.run_report import write_report
from tfnlp.training.strategy import CompressedSteps, UnequalShares
from tfnlp.utils.errors import InputError
from tfnlp.utils.formatting import counted


class FineTuner(CompressedSteps, UnequalShares, keras.Model):
    """Trainable wrapper of a model for a task; the wrapped model is saved without it.

    Args:
        model: from `tfnlp.models.build_model`, with the task's head.
        task: see `tfnlp.tasks`.
        regularizer: an `AdversarialRegularizer`, whose loss is added in training; None for
            none.
    """

    task_loss = "loss"

    def __init__(self, model, task, regularizer=None, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.task = task
        self.regularizer = regularizer
        # Tracked, so that a resumed run draws the same numbers as an uninterrupted one.
        self.regularizer_seed = getattr(regularizer, "seed_generator", None)
        self.built = True

    def call(self, inputs, training=None):
        if training and self.regularizer is not None:
            self.regularizer.keep_draws()
        outputs = self.model(inputs, training=training)
        return {key: outputs[key] for key in self.task.outputs}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        weights = () if sample_weight is None else (sample_weight,)
        loss = self.task.loss(y, y_pred, *weights)
        if training and self.regularizer is not None:
            loss = loss + self.regularizer(x, y_pred, *weights)
        return loss


def encode_batches(
    task,
    tokenizer,
    examples,
    max_length,
    batch_size,
    shuffle=False,
    seed=0,
    fixed_length=False,
):
    """Return `LengthBatches` of a task's examples, padded to `max_length` if `fixed_length`.

    The number of truncated texts is logged.
    """
    encodings, labels = task.encode(tokenizer, examples, max_length)
    rows = Encodings.from_list(encodings)
    if rows.examples is None and rows.truncated.any():
        logging.info(
            "%d of %d texts were cut to max_length=%d tokens.",
            rows.truncated.sum(),
            len(rows.truncated),
            max_length,
        )
    batches = LengthBatches(
        encodings,
        batch_size,
        labels,
        shuffle=shuffle,
        seed=seed,
        pad_token_id=tokenizer.pad_token_id,
        fixed_length=max_length if fixed_length else None,
    )
    logging.info(
        "%s in %s, %.1f %% of their tokens padding.",
        counted(len(encodings), "example"),
        counted(len(batches), "batch", "batches"),
        100 * batches.padding_share(),
    )
    return batches


def check_varied(task, train):
    """Check that training examples have more than one label, or their words more than one tag.

    Raises:
        InputError: if all have the same one.
    """
    kind = {"classifier": "label", "tagger": "tag"}.get(task.head)
    labels = getattr(train, f"{kind}s", None) if kind else None  # other heads compare places
    if labels is None:
        return
    labels = {tag for tags in labels for tag in tags} if kind == "tag" else {*labels}
    if len(labels) == 1:
        (label,) = labels
        names = getattr(train, "label_names", None)
        raise InputError(
            f"All examples of `train` have the {kind} {names[label] if names else label!r}, so "
            "that there is nothing to tell apart; give examples of others too."
        )


def start_head(task, model, train):
    """Initialise a fresh model's head from the training examples."""
    task.initialise_head(model, train)


def encode_splits(task, tokenizer, splits, config, max_length):
    """Return batches of the splits of a task's data.

    Args:
        task: see `tfnlp.tasks`.
        tokenizer: of the model.
        splits: {name: examples}; "train" is shuffled, and splits of None are left out.
        config: a `TrainingConfig`.
        max_length: the longest input in tokens.

    Returns:
        {name: `LengthBatches`}.
    """
    return {
        name: encode_batches(
            task,
            tokenizer,
            examples,
            max_length,
            config.batch_size,
            shuffle=name == "train",
            seed=config.seed,
            fixed_length=name == "train" and config.fixed_length,
        )
        for name, examples in splits.items()
        if examples is not None
    }


def fit_best(
    trained,
    model,
    task,
    tokenizer,
    splits,
    batches,
    config,
    run,
    max_length,
    made_from,
):
    """Train a model for a task and save its best epoch.

    Args:
        trained: the compiled `keras.Model` to fit, which contains `model`. Its `task_loss` is the
            name of the task's loss in the log, prefixed with "val_" on dev.
        model: the model to save, with the task's head.
        task: see `tfnlp.tasks`; the best epoch has the highest `task.monitor` on dev.
        tokenizer: the model's.
        splits: {name: examples}, "train" and "dev" among them.
        batches: {name: `LengthBatches`} of the splits.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        max_length: the longest input in tokens, saved with the task's settings.
        made_from: fingerprints of inputs outside `splits`, as in `fit`.
    """
    evaluate_dev = evaluator(model, task, batches["dev"])
    if trained.compressor is not None:
        compression = content_fingerprint(trained.compressor.config)
        made_from = made_from | {"the compression": compression}

    def save_best():
        settings = {"max_length": max_length} | (task.settings or {})
        if getattr(splits["train"], "pairs", None):
            settings["pairs"] = True
        save_model(model, run.best, task.label_names, tokenizer, settings)

    def evaluate():
        outputs, loss = evaluate_dev()
        found = task.score(splits["dev"], batches["dev"].encodings, outputs)
        return {f"val_{key}": value for key, value in {trained.task_loss: loss, **found}.items()}

    fit(
        trained,
        batches["train"],
        config,
        run,
        save_best,
        monitor=f"val_{task.monitor}",
        evaluate=evaluate,
        made_from={
            "train": content_fingerprint([splits["train"], task.label_names]),
            "dev": content_fingerprint(splits["dev"]),
            **made_from,
        },
    )


def score_splits(model, task, splits, batches):
    """Return a model's size and its scores on all splits but "train", a dict of figures.

    If all examples of a split get one answer though their labels differ, that answer is a figure
    too.
    """
    figures = {"parameters": count_parameters(model)}
    predict = predictor(model, task.outputs)
    for name, split in batches.items():
        if name == "train":
            continue
        examples = splits[name]
        predictions = task.decode(examples, split.encodings, predict(split))
        scores = task.score_predictions(examples, predictions)
        figures |= {f"{name}_{key}": value for key, value in scores.items()}
        answer = only_answer(*task.answers(examples, predictions))
        if answer is not None:
            figures[f"{name}_only_answer"] = answer
    return figures


def best_figures(trained, best, task, splits, batches, run):
    """Return the figures of a finished training: scores, baselines and those of a compressor.

    Args:
        trained: the fitted model, with or without a `compressor`.
        best: its best epoch, loaded from `run.best`.
        task, splits, batches, run: as in `fit_best`.
    """
    figures = score_splits(best, task, splits, batches) | _baseline_scores(task, splits)
    if trained.compressor is not None:
        figures |= trained.compressor.figures(best)
        figures["compressed_bytes"] = len(gzip.compress((run.best / WEIGHTS).read_bytes()))
    return figures


def _baseline_scores(task, splits):
    """Return the scores of the majority class, or the mean, of "train" on the other splits."""
    return {
        f"{name}_baseline_{key}": value
        for name, examples in splits.items()
        if name != "train" and examples is not None
        for key, value in task.baseline(splits["train"], examples).items()
    }


def count_examples(splits):
    """Return {name: number of examples} of the splits that are not None."""
    return {name: len(examples) for name, examples in splits.items() if examples is not None}


def check_compresses(config):
    """Check that a `TrainingConfig` works with a compressor.

    Raises:
        InputError: if the config has a moving average of the weights.
    """
    if config.ema_decay:
        raise InputError(
            f"ema_decay={config.ema_decay} does not go with compression: the average of weights "
            "that become zero, or clusters, one after the other has neither; leave out one."
        )


def compressed_steps(config, run, batches):
    """Return the number of training steps by which a compressor schedules its work.

    It uses the epochs that the run began with. If a finished run gets more epochs, the compressor
    keeps its progress; otherwise pruned weights would grow back.
    """
    return run.first_epochs(config.epochs) * len(batches)


def finetune(
    task,
    model,
    tokenizer,
    train,
    dev,
    config,
    run,
    max_length,
    test=None,
    regularizer=None,
    compress=None,
):
    """Fine-tune a model for a task, keep the best epoch, and report its scores.

    A killed run resumes from its folder and ends with the same weights.

    Args:
        task: see `tfnlp.tasks`.
        model: with the task's head, built in the scope of the strategy to train under.
        tokenizer: the model's.
        train, dev, test: examples of the task; the best epoch has the highest `task.monitor` on
            `dev`; `test` may be None.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        max_length: the longest input in tokens.
        regularizer: as in `FineTuner`.
        compress: function from a model and the number of steps to a compressor, such as
            `distill.compression.weight_pruning.PruningConfig.pruner`; None for none.

    Returns:
        A dict of the figures.

    Raises:
        InputError: if the model cannot be saved as a folder, texts are too long for it, or all
            training examples have one label.
    """
    check_varied(task, train)
    check_saves(model)
    splits = {"train": train, "dev": dev, "test": test}
    batches = encode_splits(task, tokenizer, splits, config, max_length)
    check_lengths(batches["train"], model)
    start_head(task, model, train)
    trained = FineTuner(model, task, regularizer)
    if compress is not None:
        check_compresses(config)
        trained.compressor = compress(model, compressed_steps(config, run, batches["train"]))
    compile_model(config, trained, len(batches["train"]), model)
    made_from = {"model": content_fingerprint(model.text_config)}
    fit_best(trained, model, task, tokenizer, splits, batches, config, run, max_length, made_from)
    best = load_model(run.best, task.head, task.num_classes, block_size=model.block_size)
    figures = best_figures(trained, best, task, splits, batches, run)
    counts = count_examples(splits)
    write_report(run, figures, task.label_names, task.monitor, examples=counts)
    return figures
