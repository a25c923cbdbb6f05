"""Training of a translator, from pairs of texts to a finished run."""

import math

from absl import logging

from tfnlp.checkpoints import check_saves, load_model, save_model
from tfnlp.models import check_lengths, check_vocabulary, config_of
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.training.fingerprints import content_fingerprint
from tfnlp.training.optimizer import compile_model
from tfnlp.training.pretraining import Evaluator, Pretrainer
from tfnlp.training.resumable_fit import fit
from tfnlp.training.run_report import write_report
from tfnlp.training.weight_averaging import RecentWeights


def train_translator(
    task,
    model,
    tokenizer,
    train,
    dev,
    config,
    run,
    max_tokens,
    max_length,
    average_epochs=0,
    fitted=None,
    score=None,
    on_nan="stop",
):
    """Train a translator, keep the epoch with the lowest perplexity on dev, and report scores.

    A killed run resumes from its folder and ends with the same weights. `run.best` is the folder
    of the best epoch; `run.averaged` that of the mean of the last epochs' weights, if requested.

    Args:
        task: a `Translation`.
        model: with the head "sequence_to_sequence", made in the scope of the strategy; it ends
            with the last epoch's weights, or their mean.
        tokenizer: of both languages, or a `MarianTokenizer` pair; saved in the run's folders.
        train, dev: `ParallelTexts`.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        max_tokens: the most tokens of a batch, as `TranslationBatches` counts them.
        max_length: the most tokens of a text, the end token counted.
        average_epochs: n, number of last epochs whose weights are averaged; 0 for none.
        fitted: function from model and batches to a model of the same weights and the batches to
            fit it on; None to use them unchanged.
        score: function from a model and a prefix to a dict of final figures; None for none.
        on_nan: as in `fit`.

    Returns:
        A dict of figures; those of the mean of the weights begin with "averaged_".

    Raises:
        InputError: if a text is too long and the task does not cut or skip it, the model cannot be
            saved as a folder, and as `fit`.
    """
    check_vocabulary(tokenizer, model)
    check_saves(model)
    known = (tokenizer, config_of(model), max_tokens, max_length)
    batches = task.batches(train, *known, shuffle=True, seed=config.seed)
    dev_batches = task.batches(dev, *known)
    for each in (batches, dev_batches):
        check_lengths(each, model)
    logging.info(
        "%d pairs in %d batches of at most %d tokens, %.1f %% of them padding.",
        len(batches.sources),
        len(batches),
        max_tokens,
        100 * batches.padding_share(),
    )
    trained, read = (model, batches) if fitted is None else fitted(model, batches)
    trainer = Pretrainer(task, trained)
    compile_model(config, trainer, len(batches))
    measure = Evaluator(task, model, dev_batches.signature())
    recent = RecentWeights(run.path / "recent", average_epochs)

    def evaluate():
        if average_epochs and run.writes:
            recent.keep(len(run.metrics()) + 1, model)
        return {f"val_{name}": value for name, value in measured(measure, dev_batches).items()}

    def save(folder=run.best):
        save_model(model, folder, tokenizer=tokenizer)

    fit(
        trainer,
        read,
        config,
        run,
        save,
        monitor="val_log_likelihood",
        evaluate=evaluate,
        made_from={
            "model": content_fingerprint(config_of(model)),
            "the task": content_fingerprint(task),
            "the encoded dev batches": dev_batches.fingerprint(),
        },
        on_nan=on_nan,
    )
    epochs = len(run.metrics())
    figures = {
        "parameters": count_parameters(model),
        "pairs": len(batches.sources),
        "epochs": epochs,
        "steps": epochs * len(batches),
    }
    found = {"": load_model(run.best, task.head)}
    if average_epochs:
        recent.load_mean(model, epochs)
        if run.writes:
            save(run.averaged)
        found["averaged_"] = model
    for prefix, scored in found.items():
        measure = Evaluator(task, scored, dev_batches.signature())
        of_it = {f"dev_{name}": value for name, value in measured(measure, dev_batches).items()}
        if score is not None:
            of_it |= score(scored, prefix)
        figures |= {f"{prefix}{name}": value for name, value in of_it.items()}
    counts = {"train": len(train), "dev": len(dev)}
    write_report(run, figures, metric="perplexity", examples=counts)
    return figures


def measured(measure, batches):
    """Return the metrics of an `Evaluator` and the perplexity, exp(-log-likelihood of a token)."""
    found = measure(batches)
    return found | {"perplexity": math.exp(min(-found["log_likelihood"], 700.0))}
