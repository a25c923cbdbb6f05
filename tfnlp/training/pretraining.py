"""Pretraining for an objective, from batches to a finished run."""

import keras
import tensorflow as tf
from absl import logging
from keras import ops

from tfnlp.checkpoints import check_saves, load_model, read_config, save_model
from tfnlp.models import build_model, check_lengths, check_vocabulary
from tfnlp.objectives.batch_provenance import batch_origin
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.training.fingerprints import content_fingerprint
from tfnlp.training.fixed_step_epochs import Rounds
from tfnlp.training.non_finite_steps import FiniteMean, LeavesOutBadSteps
from tfnlp.training.optimizer import compile_model
from tfnlp.training.resumable_fit import fit
from tfnlp.training.run_folder import TIMES
from tfnlp.training.run_report import write_report
from tfnlp.training.strategy import UnequalShares
from tfnlp.utils.errors import InputError
from tfnlp.utils.formatting import counted
from tfnlp.weighted_losses import KeptSums, in_parts, reads_parts, whole


class Pretrainer(LeavesOutBadSteps, UnequalShares, keras.Model):
    """Trainable wrapper of the models of an objective, which are saved without it.

    The loss is the weighted sum of the objective's losses; each is also logged by its name,
    without its weight. A step whose loss or gradients are not finite, or whose loss explodes,
    changes no weight.

    Args:
        objective: see `tfnlp.objectives`.
        trained: the model that its method `trained` returns.
    """

    def __init__(self, objective, trained, **kwargs):
        super().__init__(**kwargs)
        self.objective = objective
        self.trained = trained
        # A single loss equals the total loss.
        names = objective.loss_weights if len(objective.loss_weights) > 1 else ()
        self.trackers = {name: FiniteMean(name=name) for name in names}
        self.built = True

    def call(self, inputs, training=None):
        return self.trained(inputs, training=training)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        losses = self.objective.losses(y, y_pred, sample_weight)
        count = ops.shape(keras.tree.flatten(x)[0])[0]
        for name, tracker in self.trackers.items():
            tracker.update_state(whole(losses[name]), sample_weight=count)
        loss = weighted_sum(losses, self.objective.loss_weights)
        # With gradient accumulation the step checks the sum over the parts.
        return self.watched(loss) if training and not reads_parts() else loss


def weighted_sum(losses, weights):
    """Return the sum of losses times their weights, both dicts with the same keys."""
    return sum(weights[name] * loss for name, loss in losses.items())


class Evaluator:
    """Evaluation of a model on batches; its graph is traced once.

    Args:
        objective: see `tfnlp.objectives`.
        trained: the model that its method `trained` returns.
        signature: of the batches.

    Call arguments:
        batches: have the method `epoch`.

    Returns:
        A dict: the objective's losses, means over the entries of all batches, such as predicted
        tokens; `loss`, their weighted sum; and its scores, means over the scored entries.
    """

    def __init__(self, objective, trained, signature):
        self.objective = objective

        @tf.function(input_signature=list(signature))
        def measured(inputs, labels):
            outputs = trained(inputs, training=False)
            with in_parts(KeptSums()) as kept:
                losses = objective.losses(labels, outputs)
            sums = {name: kept.of(loss) for name, loss in losses.items()}
            return sums, objective.scores(labels, outputs)

        self._measured = measured

    def check(self, batches):
        """Check that each loss has an entry, reading only as many batches as needed.

        Raises:
            InputError: if a loss has none.
        """
        missing = set(self.objective.loss_weights)
        for inputs, labels in batches.epoch():
            losses, _ = self._measured(inputs, labels)
            missing -= {name for name, (_, weight) in losses.items() if float(weight) > 0}
            if not missing:
                return
        raise InputError(
            "`dev` has no token to score, such as one that could be masked; give more text, or "
            "text that the tokenizer knows."
        )

    def __call__(self, batches):
        sums = {}
        for inputs, labels in batches.epoch():
            losses, scores = self._measured(inputs, labels)
            for name, (total, weight) in (losses | scores).items():
                before, weights = sums.get(name, (0.0, 0.0))
                sums[name] = before + float(total), weights + float(weight)
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
        {name: `TextModel`}, as `pretrain` takes them.

    Raises:
        InputError: if the models of two folders were not trained together, and as `load_model`.
    """
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


def pretrain(
    objective,
    models,
    tokenizer,
    batches,
    dev_batches,
    config,
    run,
    made_from=None,
    on_nan="stop",
    steps_per_epoch=None,
    task_settings=None,
    pooler=None,
):
    """Train models for an objective, and keep those of the last epoch.

    A killed run resumes from its folder and ends with the same weights. `run.best` is the folder
    of the first model; each further one has a folder of its name beside it.

    Args:
        objective: see `tfnlp.objectives`.
        models: {name: `TextModel`}, built in the scope of the strategy to train under.
        tokenizer: of all models.
        batches: the objective's training batches.
        dev_batches: to evaluate on after each epoch; None for none.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        made_from: a dict of fingerprints, as in `fit`.
        on_nan: as in `fit`.
        steps_per_epoch: steps of an epoch, across passes over the batches; one full pass where
            None.
        task_settings: a dict of the batches' settings, such as `max_length` and `documents`, which
            `save_model` writes and `evaluate_lm` follows; None for none.
        pooler: the result of `read_pooler` for the folder that the first model started from, kept
            if the objective trains none; None for none.

    Returns:
        A dict of figures: sizes, and the losses and scores of the last epoch.

    Raises:
        InputError: if a model does not fit objective, tokenizer or batches, or cannot be saved as
            a folder; if dev batches have no token to score; and as `fit`.
    """
    for model in models.values():
        check_vocabulary(tokenizer, model)
        check_saves(model)
        check_lengths(batches, model)
    rounds = Rounds(batches, steps_per_epoch) if steps_per_epoch else batches
    first = next(iter(models.values()))
    if objective.memory and config.accumulation_steps > 1:
        raise InputError(
            f"accumulation_steps={config.accumulation_steps} does not go with a memory, whose "
            "lanes go on from batch to batch as a whole; give a smaller batch_size instead."
        )
    objective.initialise_head(first, batches)
    # A memory has a lane for each row of a batch.
    lanes = {"batch_size": config.batch_size} if objective.memory else {}
    trained = objective.trained(models if len(models) > 1 else first, **lanes)
    pretrainer = Pretrainer(objective, trained)
    compile_model(config, pretrainer, len(rounds))
    logging.info(
        "%s of %s in %s.",
        counted(len(batches.lengths), "text"),
        counted(batches.lengths.sum(), "token"),
        counted(len(batches), "batch", "batches"),
    )

    def origin(epoch, number):
        step = epoch * len(rounds) + number
        return batch_origin(batches, *divmod(step, len(batches)))

    evaluate = None
    if dev_batches is not None:
        measure = Evaluator(objective, trained, dev_batches.signature())
        measure.check(dev_batches)

        def evaluate():
            return {f"val_{name}": value for name, value in measure(dev_batches).items()}

    def save():
        how = {"tokenizer": tokenizer, "task_settings": task_settings}
        for number, (name, model) in enumerate(models.items()):
            folder = run.path / name if number else run.best
            save_model(model, folder, **how, pooler=None if number else pooler)

    made_from = {
        "model": content_fingerprint([model.text_config for model in models.values()]),
        "the objective": content_fingerprint([type(objective).__name__, objective]),
        **(made_from or {}),
    }
    if dev_batches is not None:
        made_from["the encoded dev batches"] = dev_batches.fingerprint()
    fit(
        pretrainer,
        rounds,
        config,
        run,
        save,
        monitor=None,
        evaluate=evaluate,
        made_from=made_from,
        on_nan=on_nan,
        origin=origin,
    )
    figures = _figures(models, batches, run)
    figures["steps"] = config.epochs * len(rounds)
    scores = [name for name in figures if name.startswith("val_") and not name.endswith("loss")]
    metric = scores[0].removeprefix("val_") if scores else None
    write_report(run, figures, metric=metric, epoch="last")
    return figures


def _figures(models, batches, run):
    """Return model and data sizes, and the metrics of the last epoch."""
    (first, *further) = models.items()
    last = run.metrics()[-1]
    return {
        "parameters": count_parameters(first[1]),
        **{f"{name}_parameters": count_parameters(model) for name, model in further},
        "texts": len(batches.lengths),
        "tokens": int(batches.lengths.sum()),
        **{k: v for k, v in last.items() if k not in ("epoch", *TIMES, "learning_rate")},
    }
