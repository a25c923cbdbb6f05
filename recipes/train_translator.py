"""Trains a translator on texts with their translations.

A Transformer with a vocabulary learned of both languages; a table with a column of each:

    python -m recipes.train_translator --train=train.tsv.gz --dev=dev.tsv --test=test.tsv \\
        --source_column=en --target_column=de --dropout=0.2 --learning_rate=3e-3 \\
        --warmup_steps=400 --schedule=linear --epochs=30 --average_epochs=5 --output_dir=runs/en-de

or two files, line by line, and a recurrent model:

    python -m recipes.train_translator --train=train.en,train.de --dev=dev.en,dev.de \\
        --family=recurrent --attention=none --output_dir=runs/control

A smaller student, by what its teacher wrote (Kim & Rush 2016, section 3.2):

    python -m recipes.translate --model_dir=runs/en-de/averaged --input=train.tsv.gz \\
        --text_column=en --translation_column=de --output=taught.tsv
    python -m recipes.train_translator --teacher_dir=runs/en-de/averaged --num_decoder_layers=2 \\
        --train=taught.tsv --dev=dev.tsv --source_column=en --target_column=de \\
        --output_dir=runs/student

OUTPUT_DIR/best is the epoch of the least perplexity on --dev, OUTPUT_DIR/averaged the mean of the
weights after the last --average_epochs. figures.json has BLEU and chrF of both, by sacrebleu, with
their signatures, and dev_translations.tsv and test_translations.tsv the texts. A run that is
stopped or killed goes on by the same command, and ends with the same weights.
"""

import functools

from absl import flags, logging

import tfnlp
from recipes import common, translator_model_flags
from recipes.command_line import group
from tfnlp import generation, tasks, training
from tfnlp.training.training_config import SCHEDULES
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
WARMUP_STEPS = 4000  # as in Vaswani et al.


@group("Data")
def define_data_flags():
    """Define the flags of the texts."""
    flags.DEFINE_list(
        "train",
        None,
        "Training file, .tsv, .csv, .json or .jsonl; or two text files, of which each line of the "
        "second translates that of the first; or with .gz.",
    )
    flags.DEFINE_list("dev", None, "Likewise, to pick the best epoch and to report on.")
    flags.DEFINE_list("test", None, "Likewise, translated and scored once at the end, if given.")
    flags.DEFINE_string("source_column", "source", "Column of the texts, where there are columns.")
    flags.DEFINE_string("target_column", "target", "Column of their translations, likewise.")
    flags.mark_flags_as_required(["train", "dev"])


@group("Training")
def define_step_flags():
    """Define the flags of batches and of a step's loss."""
    flags.DEFINE_integer(
        "max_length", 128, "Longest source, and target, in tokens; see --too_long.", 2
    )
    flags.DEFINE_enum(
        "too_long",
        "error",
        ["error", "cut", "skip"],
        "What is done with a pair that is too long: an error, the ends of its texts are cut, or "
        "it is left out, of --dev too; how many is said. Sources that are scored are then cut.",
    )
    flags.DEFINE_integer(
        "max_tokens", 4096, "Most tokens of a batch, sources and targets, padding counted.", 2
    )
    flags.DEFINE_float("label_smoothing", 0.1, "Share of each label that is of all tokens.", 0, 1)
    flags.DEFINE_integer(
        "average_epochs", 0, "Last epochs over which the weights' mean is saved; 0: none.", 0
    )
    flags.DEFINE_float(
        "scheduled_sampling",
        0.0,
        "Share of its own tokens that a recurrent decoder reads at the end of the training; it "
        "rises from 0.",
        0,
        1,
    )
    common.define_on_nan_flag()


@group("Optimizer")
def define_rate_flags():
    """Define the flags of the optimizer and its schedule."""
    flags.DEFINE_float(
        "learning_rate",
        None,
        "Peak learning rate; if not given Vaswani et al.'s (--hidden_dim * --warmup_steps) ** "
        "-0.5, of their 4000 steps where these are not given either.",
        0,
    )
    flags.DEFINE_enum("schedule", "inverse_sqrt", SCHEDULES, "How the rate falls after its peak.")
    flags.DEFINE_integer(
        "warmup_steps", None, "Steps in which the rate rises; a tenth of all if not given.", 0
    )
    flags.DEFINE_float("beta_2", 0.98, "Decay of the mean of squared gradients.", 0, 1)
    flags.DEFINE_float("weight_decay", 1e-4, "Decay of weights; none on biases and norms.", 0)
    flags.DEFINE_float("clip_norm", 1.0, "Largest norm of all gradients together; 0: any.", 0)


@group("Score")
def define_search_flags():
    """Define the flags of the translations that are scored."""
    flags.DEFINE_integer("beams", 4, "Texts side by side; 1 for greedy search.", 1)
    flags.DEFINE_float("length_penalty", 1.0, "Exponent of a beam's norm of length; 0 for none.")
    flags.DEFINE_string("tokenize", "13a", "How BLEU splits words, as in score_text.")


define_data_flags()
translator_model_flags.define_model_flags()
translator_model_flags.define_scratch_flags()
common.define_run_flags(epochs=30)
define_step_flags()
define_rate_flags()
define_search_flags()


def check():
    """Raise an InputError for conflicting flags."""
    translator_model_flags.check_flags()
    if FLAGS.learning_rate is None and FLAGS.warmup_steps == 0:
        raise InputError("warmup_steps=0 needs a `learning_rate`: it has no peak.")
    if FLAGS.scheduled_sampling and FLAGS.family in (None, "transformer") and not FLAGS.model_dir:
        raise InputError(
            f"scheduled_sampling={FLAGS.scheduled_sampling} is of a recurrent model, which reads "
            "one token after the other; give `family`, or leave it out."
        )

    tasks.make_bleu(FLAGS.tokenize)  # fail now, not after the training


def read_split(name):
    """Read the texts of --train, --dev or --test; return None if the flag is not given."""

    columns = FLAGS.source_column, FLAGS.target_column
    return tasks.read_parallel_texts(FLAGS[name].value, *columns) if FLAGS[name].value else None


def settings_for(model):
    """Return the `TrainingConfig` of the flags; the model's width sets the default peak rate."""

    rate = FLAGS.learning_rate
    if rate is None:
        rate = training.vaswani_peak(
            tfnlp.models.config_of(model).hidden_dim, FLAGS.warmup_steps or WARMUP_STEPS
        )
        logging.info("The peak of the learning rate is %.6f.", rate)
    return common.training_config(learning_rate=rate)


def fitted(model, batches):
    """Return the model to fit and its batches, with scheduled sampling if the flags ask for it.

    The returned model shares the weights of `model`.

    Raises:
        InputError: if --scheduled_sampling is given for a model that is not recurrent.
    """

    if not FLAGS.scheduled_sampling:
        return model, batches
    if not isinstance(tfnlp.models.config_of(model), tfnlp.models.RecurrentTranslatorConfig):
        raise InputError(
            f"scheduled_sampling={FLAGS.scheduled_sampling} is of a recurrent model, which reads "
            "one token after the other; leave it out."
        )
    sampled = tasks.ScheduledSampling(batches, FLAGS.scheduled_sampling, FLAGS.epochs)
    return tfnlp.models.recurrent_translator.scheduled_sampling_model(model), sampled


def make_translator(model, tokenizer):
    """Build the `Translator` that translates texts for scoring."""

    how = (
        generation.Greedy()
        if FLAGS.beams == 1
        else generation.Beam(FLAGS.beams, FLAGS.length_penalty)
    )
    most = min(FLAGS.max_length, tfnlp.models.max_positions(model) or FLAGS.max_length)
    return generation.Translator(model, tokenizer, search=how, max_new_tokens=most, batch_size=32)


def too_long_to_score():
    """Return the `too_long` argument for sources that are scored: "error" or "cut"."""
    return "error" if FLAGS.too_long == "error" else "cut"


def make_scores(run, tokenizer, splits):
    """Return a function of (model, file prefix) that translates the splits and returns scores."""

    def score(model, prefix):
        translator, figures = make_translator(model, tokenizer), {}
        translate = functools.partial(translator, too_long=too_long_to_score())
        for name, texts in splits.items():
            path = run.path / f"{prefix}{name}_translations.tsv"
            found = generation.score_translations(translate, texts, path, FLAGS.tokenize)
            figures |= {f"{name}_{key}": value for key, value in found.items()}
        return figures

    return score


def main():
    import keras

    task = tasks.Translation(FLAGS.label_smoothing, FLAGS.too_long)
    run = common.run_folder()
    train, dev, test = (read_split(name) for name in ("train", "dev", "test"))
    keras.utils.set_random_seed(FLAGS.seed)
    training.set_precision(FLAGS.precision)
    with training.make_strategy(FLAGS.strategy).scope():
        model, tokenizer = translator_model_flags.make_model([*train.sources, *train.targets])
        if translator_model_flags.learned_tokenizer():
            run.tokenizer = tokenizer
        translator = make_translator(model, tokenizer)
        scored = {"dev": dev} if test is None else {"dev": dev, "test": test}
        for texts in scored.values():
            # Refuse sources that are too long now, not after the training.
            translator.source_ids(texts.sources, texts.place, too_long_to_score())
        return training.train_translator(
            task,
            model,
            tokenizer,
            data=training.Splits(train, dev, FLAGS.max_length),
            config=settings_for(model),
            run=run,
            max_tokens=FLAGS.max_tokens,
            average_epochs=FLAGS.average_epochs,
            sample=fitted,
            score=make_scores(run, tokenizer, scored),
            on_nan=FLAGS.on_nan,
        )


if __name__ == "__main__":
    common.run(main, check=check)
