"""Translates texts: those of --text, of a file, or line by line from standard input.

    python -m recipes.translate --model_dir=runs/en-de/averaged --text="Two dogs are playing."
    python -m recipes.translate --model_dir=runs/en-de/averaged < test.en > test.de
    python -m recipes.translate --model_dir=opus-mt-en-de --input=train.tsv.gz --text_column=en \\
        --translation_column=de --output=taught.tsv
    python -m recipes.translate --model_dir=runs/en-de/averaged --search=sample --top_p=0.9 \\
        --n_best=3 --text="Two dogs are playing."

It prints a translation on each line, in batches of --batch_size; with --n_best more than one, the
best first, with the scores of --search=beam before them. An empty text has an empty translation.
--output sorts texts by length, which is faster; the file has columns of texts, translations and
scores. The same command resumes a stopped or killed run from OUTPUT.part. The first batch of a
length takes some seconds longer, because the search is compiled.

--model_dir may be a .tflite file of export_tflite instead, which writes the same translations
without TensorFlow, a text at a time, by the beams that it was exported with.
"""

import itertools
import sys

from absl import flags

import tfnlp
from distill import runtime
from distill.runtime.associated_files import CHECKSUM, check_kind
from recipes.flags import generation_flags, model_flags
from recipes.shell import entry_point
from recipes.shell.command_line import check_output, refuse_beside
from recipes.shell.input_checks import names_file
from tfnlp import checkpoints, generation, training
from tfnlp.tasks.kinds import TRANSLATOR
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
model_flags.define_model_flag(generation_flags.OR_FILE)
flags.DEFINE_multi_string("text", [], "A text.")
flags.DEFINE_string(
    "input",
    None,
    "File of texts: .tsv, .csv, .json, .jsonl or .parquet, or a text a line; or with .gz.",
)
flags.DEFINE_string("text_column", "source", "Column of the texts in a table.")
flags.DEFINE_string(
    "translation_column", "translation", "Column of the translations, in --output."
)
flags.DEFINE_string("output", None, "File to write, .tsv; printed if not given.")
flags.DEFINE_integer(
    "max_new_tokens", None, "Most tokens of a translation; 128 or fewer if not given.", 1
)
flags.DEFINE_integer("batch_size", 32, "Texts in a batch.", 1)
flags.DEFINE_enum(
    "too_long",
    "cut",
    ["error", "cut", "skip"],
    "Handling of texts with more tokens than the model has positions: an error, cut their ends, "
    "or skip them (an empty translation).",
)
flags.DEFINE_integer("n_best", 1, "Translations of each text, with --search=beam or sample.", 1)
generation_flags.define_search_flags("beam")
generation_flags.define_constraint_flags()


def check_flags():
    """Raise an InputError for conflicting flags."""
    if FLAGS.input:
        refuse_beside(["text"], f"input={FLAGS.input}")
    if FLAGS.output:
        check_output("output", ".tsv")
    generation_flags.search_of_flags("n_best")
    if names_file("model_dir"):
        refuse_beside(["batch_size"], f"model_dir={FLAGS.model_dir}, which reads a text at a time")
    elif checkpoints.read_head(FLAGS.model_dir) != "sequence_to_sequence":
        raise InputError(
            f"model_dir={FLAGS.model_dir} holds no translator; give the folder of one, such as "
            "best/ of a run of train_translator."
        )


def read_sources():
    """Return an iterator over the texts of --text, --input or standard input, empty ones too."""
    if FLAGS.text:
        return iter(FLAGS.text)
    if FLAGS.input:
        return tfnlp.text.read_every_text(FLAGS.input, FLAGS.text_column)
    return (text for _, text in tfnlp.text.decoded_lines(sys.stdin.buffer, "Standard input"))


def name_of_source(number):
    """Return the name of a source in error messages, from its number counted from 0."""
    if FLAGS.text:
        return f"--text number {number + 1}"
    place = f"{FLAGS.input}, text" if FLAGS.input else "standard input, line"
    return f"{place} {number + 1}"


def write_file(translator, made_from):
    """Translate all texts into --output.

    Args:
        translator: a `Translator`.
        made_from: what identifies the model and settings, so that a stopped run resumes.
    """
    sources = list(read_sources())
    ids = translator.source_ids(sources, name_of_source, FLAGS.too_long)
    made_from = training.content_fingerprint([ids, *made_from])
    columns = FLAGS.text_column, FLAGS.translation_column
    generation.translate_file(translator, sources, ids, FLAGS.output, made_from, columns=columns)


def print_each(translator):
    """Print the translations of each batch of texts once it is read."""
    sources, ended = read_sources(), []
    size = 1 if names_file("model_dir") else FLAGS.batch_size
    for start in itertools.count(0, size):
        batch = list(itertools.islice(sources, size))
        if not batch:
            break
        ids = translator.source_ids(
            batch, lambda number, start=start: name_of_source(start + number), FLAGS.too_long
        )
        translations = dict(translator.each_translation(ids, start))
        for one in itertools.chain.from_iterable(
            translations[number] for number in range(len(batch))
        ):
            score = "" if FLAGS.n_best == 1 or one.score is None else f"{one.score:.4f}\t"
            print(f"{score}{generation.one_line(one.text)}")
            ended.append(one.ended)
        sys.stdout.flush()
    generation.warn_of_cut(ended, translator)


def translator_of_file(search):
    """Return the `Translator` of a .tflite file, and what identifies it and its settings."""
    settings, files = runtime.read_files(FLAGS.model_dir)
    check_kind(FLAGS.model_dir, settings, TRANSLATOR)
    _, target = runtime.read_tokenizers(FLAGS.model_dir, settings, files)
    end = settings["generation"]["end_token_id"]
    constraints = generation_flags.constraints_of_flags(target, end)
    options = {"max_new_tokens": FLAGS.max_new_tokens, "constraints": constraints}
    translator = runtime.Translator(FLAGS.model_dir, search, **options)
    return translator, [settings[CHECKSUM], repr(translator.settings)]


def translator_of_folder(search):
    """Return the `Translator` of a model's folder, and what identifies it and its settings."""
    entry_point.load_tensorflow()
    model = checkpoints.load_model(FLAGS.model_dir, "sequence_to_sequence")
    tokenizer = tfnlp.text.load_tokenizer(FLAGS.model_dir)
    constraints = generation_flags.constraints_of_flags(
        getattr(tokenizer, "target", tokenizer), tfnlp.models.config_of(model).end_token_id
    )
    translator = generation.Translator(
        model,
        tokenizer,
        search=search,
        constraints=constraints,
        max_new_tokens=FLAGS.max_new_tokens,
        batch_size=FLAGS.batch_size,
    )
    settings = [repr(search), repr(constraints), FLAGS.max_new_tokens]
    return translator, [training.model_fingerprint(model), *settings]


def main():
    check_flags()
    search = generation_flags.search_of_flags("n_best")
    load = translator_of_file if names_file("model_dir") else translator_of_folder
    translator, made_from = load(search)
    if FLAGS.output:
        write_file(translator, made_from)
    else:
        print_each(translator)


if __name__ == "__main__":
    entry_point.run(main)
