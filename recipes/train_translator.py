"""Trains a translator on parallel texts.

Train a Transformer with a joint vocabulary on a table with a column for each language:

    python -m recipes.train_translator --train=train.tsv.gz --dev=dev.tsv --test=test.tsv \\
        --source_column=en --target_column=de --dropout=0.2 --learning_rate=3e-3 \\
        --warmup_steps=400 --schedule=linear --epochs=30 --average_epochs=5 --output_dir=runs/en-de

or a recurrent model on two files, line by line:

    python -m recipes.train_translator --train=train.en,train.de --dev=dev.en,dev.de \\
        --family=recurrent --attention=none --output_dir=runs/control

Distil a smaller student from its teacher's translations (Kim & Rush 2016, section 3.2):

    python -m recipes.translate --model_dir=runs/en-de/averaged --input=train.tsv.gz \\
        --text_column=en --translation_column=de --output=taught.tsv
    python -m recipes.train_translator --teacher_dir=runs/en-de/averaged --num_decoder_layers=2 \\
        --train=taught.tsv --dev=dev.tsv --source_column=en --target_column=de \\
        --output_dir=runs/student

OUTPUT_DIR/best is the epoch with the lowest perplexity on --dev, OUTPUT_DIR/averaged the mean of
the weights after the last --average_epochs. figures.json has sacrebleu's BLEU and chrF of both,
with their signatures; dev_translations.tsv and test_translations.tsv have the texts. The same
command resumes a stopped or killed run, which ends with the same weights.
"""

import dataclasses
import functools

from absl import flags, logging

import tfnlp
from recipes.flags import (
    data_flags,
    dataclass_flags,
    model_flags,
    training_flags,
    translator_model_flags,
)
from recipes.shell import entry_point
from recipes.shell.command_line import group
from tfnlp import configs, generation, tasks, training
from tfnlp.generation.generation_settings import Beam, Greedy
from tfnlp.training.run.training_config import TranslatorConfig
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
WARMUP_STEPS = 4000  # as in Vaswani et al.
# Handling of sources that are scored, by --too_long.
SCORED = {"error": "error", "cut": "cut", "skip": "cut"}
with group("Data"):
    flags.DEFINE_list(
        "train",
        None,
        "Training file, .tsv, .csv, .json, .jsonl or .parquet; or two text files, source and "
        "target, with a sentence on each line; or with .gz.",
    )
    flags.DEFINE_list(
        "dev", None, "File or files, likewise, to select the best epoch and report on."
    )
    data_flags.define_further_dev_flag()
    flags.DEFINE_list(
        "test", None, "File or files, likewise, to translate and score at the end, if given."
    )
    flags.DEFINE_string("source_column", "source", "Column of the source texts in a table.")
    flags.DEFINE_string("target_column", "target", "Column of the target texts in a table.")
    flags.mark_flags_as_required(["train", "dev"])
translator_model_flags.define_model_flags()
translator_model_flags.define_scratch_flags()
training_flags.define_run_flags(epochs=30)
with group("Training"):
    flags.DEFINE_integer(
        "max_length", 128, "Longest source, and target, in tokens; see --too_long.", 2
    )
    flags.DEFINE_enum(
        "too_long",
        "error",
        list(SCORED),
        "Handling of pairs that are too long: an error, cut the ends of their texts, or skip them "
        "(also in --dev). Sources to score are then cut.",
    )
    dataclass_flags.define(TranslatorConfig, "max_tokens", "average_epochs", "on_nan")
    flags.DEFINE_float("label_smoothing", 0.1, "Label smoothing.", 0, 1)
    flags.DEFINE_float(
        "scheduled_sampling",
        0.0,
        "Share of its own predictions that a recurrent decoder reads at the end of the training, "
        "rising from 0 (scheduled sampling).",
        0,
        1,
    )
with group("Optimizer"):
    flags.DEFINE_float(
        "learning_rate",
        None,
        "Peak learning rate; if not given (--hidden_dim * --warmup_steps) ** -0.5 (Vaswani et al. "
        "2017), with 4000 steps if these are not given.",
        0,
    )
    dataclass_flags.define(
        TranslatorConfig,
        "schedule",
        "warmup_steps",
        "clip_norm",
        schedule="inverse_sqrt",
        weight_decay=1e-4,
    )
    training_flags.define_number_flags(beta_2=0.98)
with group("Score"):
    dataclass_flags.define(Beam, "beams", "length_penalty")
    flags.DEFINE_string("tokenize", "13a", "Word splitting of BLEU, as in score_text.")


def check_flags():
    """Raise an InputError for conflicting flags."""
    training_flags.training_config(TranslatorConfig)
    translator_model_flags.check_flags()
    if FLAGS.learning_rate is None and FLAGS.warmup_steps == 0:
        raise InputError("warmup_steps=0 needs a `learning_rate`: it has no peak.")
    if not FLAGS.model_dir:
        check_sampling(FLAGS.family == "recurrent")
    tasks.make_bleu(FLAGS.tokenize)  # fail now, not after the training


def check_sampling(recurrent):
    """Raise an InputError for --scheduled_sampling unless the model is recurrent."""
    if FLAGS.scheduled_sampling and not recurrent:
        raise InputError(
            f"scheduled_sampling={FLAGS.scheduled_sampling} needs a recurrent model; give "
            "family=recurrent, or leave it out."
        )


def with_rate(config, model):
    """Return a `TranslatorConfig` whose peak rate, if not given, is that of the model's width."""
    if FLAGS.learning_rate is not None:
        return config
    width, steps = tfnlp.models.config_of(model).hidden_dim, config.warmup_steps or WARMUP_STEPS
    rate = training.vaswani_peak(width, steps)
    logging.info("The peak of the learning rate is %.6f.", rate)
    return dataclasses.replace(config, learning_rate=rate)


def fitted(model, batches):
    """Return the model to fit and its batches, with scheduled sampling if the flags ask for it.

    The returned model shares the weights of `model`.
    """
    if not FLAGS.scheduled_sampling:
        return model, batches
    epochs = training_flags.training_config(TranslatorConfig).total_epochs(len(batches))
    sampled = tasks.ScheduledSampling(batches, FLAGS.scheduled_sampling, epochs)
    return tfnlp.models.recurrent_translator.ReadsOwnTokens(model), sampled


def make_translator(model, tokenizer):
    """Build the `Translator` that translates texts for scoring."""
    search = dataclass_flags.read(Beam if FLAGS.beams > 1 else Greedy)
    most = min(FLAGS.max_length, tfnlp.models.max_positions(model) or FLAGS.max_length)
    return generation.Translator(
        model, tokenizer, search=search, max_new_tokens=most, batch_size=32
    )


def score(run, tokenizer, splits, model, prefix):
    """Translate the splits by a model to files with a prefix, and return {figure: value}."""
    translate, figures = make_translator(model, tokenizer), {}
    translate = functools.partial(translate, too_long=SCORED[FLAGS.too_long])
    for name, texts in splits.items():
        path = run.path / f"{prefix}{name}_translations.tsv"
        scores = generation.score_translations(translate, texts, path, FLAGS.tokenize)
        figures |= {f"{name}_{key}": value for key, value in scores.items()}
    return figures


def main():
    check_flags()
    columns = FLAGS.source_column, FLAGS.target_column
    splits = data_flags.read_splits(lambda paths: tasks.read_parallel_texts(paths, *columns))
    train = splits["train"]
    config, run = training_flags.start_run(TranslatorConfig)
    task = tasks.Translation(FLAGS.label_smoothing, FLAGS.too_long)
    with training.make_strategy(FLAGS.strategy).scope():
        model, tokenizer = translator_model_flags.make_model([*train.sources, *train.targets])
        recurrent = configs.RecurrentTranslatorConfig
        check_sampling(isinstance(tfnlp.models.config_of(model), recurrent))
        model_flags.keep_tokenizer(run, tokenizer)
        translator = make_translator(model, tokenizer)
        scored = {name: splits[name] for name in ("dev", "test") if name in splits}
        for texts in scored.values():
            # Refuse sources that are too long now, not after the training.
            translator.source_ids(texts.sources, texts.place, SCORED[FLAGS.too_long])
        training.TranslatorTraining(
            task,
            model,
            tokenizer,
            data=training.Splits.from_parts(splits | {"test": None}, FLAGS.max_length),
            config=with_rate(config, model),
            run=run,
            sample=fitted,
            score=functools.partial(score, run, tokenizer, scored),
        ).run_all()


if __name__ == "__main__":
    entry_point.run(main)
