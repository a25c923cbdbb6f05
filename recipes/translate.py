"""Translates texts by a translator: of --text, of a file, or line by line of standard input.

    python -m recipes.translate --model_dir=runs/en-de/averaged --text="Two dogs are playing."
    python -m recipes.translate --model_dir=runs/en-de/averaged < test.en > test.de
    python -m recipes.translate --model_dir=opus-mt-en-de --input=train.tsv.gz --text_column=en \\
        --translation_column=de --output=taught.tsv

Printed is a translation on each line; with --n_best more than one, the best first, each after its
score. Those of an empty text are empty. --output has columns of texts, their translations and
scores; what there is of it is kept in OUTPUT.part, from which a run that was stopped or killed
goes on by the same command. The first batch of a length takes some seconds longer, as the search
is compiled.
"""

import sys

from absl import flags

from recipes import common
from recipes.command_line import group
from tfnlp.errors import InputError

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of a translator, or its name on the Hub.")
flags.DEFINE_multi_string("text", [], "A text.")
flags.DEFINE_string("input", None, "File of texts: .tsv, .csv, .json, .jsonl, or a text a line.")
flags.DEFINE_string("text_column", "source", "Column of the texts, where there are columns.")
flags.DEFINE_string(
    "translation_column", "translation", "Column of the translations, in --output."
)
flags.DEFINE_string("output", None, "File to write, .tsv; printed if not given.")
flags.mark_flag_as_required("model_dir")


@group("Search")
def define_search_flags():
    """Flags of how translations are found."""
    flags.DEFINE_integer("beams", 4, "Texts side by side; 1 for greedy search.")
    flags.DEFINE_float("length_penalty", 1.0, "Exponent of a beam's norm of length; 0 for none.")
    flags.DEFINE_enum(
        "normalization", "length", ["length", "gnmt"], "The norm: t, or (5 + t) / 6 of Wu et al."
    )
    flags.DEFINE_integer("n_best", 1, "Translations of each text; --beams at most.")
    flags.DEFINE_integer(
        "max_new_tokens",
        None,
        "Most tokens of a translation; 128, or as many as the model has positions, if not given.",
        1,
    )
    flags.DEFINE_integer("batch_size", 32, "Texts in a batch.", 1)


define_search_flags()


def check():
    """Raises an InputError for flags that do not go together."""
    from tfnlp.files import check_writable

    if FLAGS.text and FLAGS.input:
        raise InputError("Give either --text or --input.")
    if FLAGS.beams < 1:
        raise InputError(f"beams={FLAGS.beams} must be at least 1.")
    if not 1 <= FLAGS.n_best <= FLAGS.beams:
        raise InputError(
            f"n_best={FLAGS.n_best} must be from 1 to beams={FLAGS.beams}, the texts that there "
            "are."
        )
    if FLAGS.output:
        if not FLAGS.output.endswith(".tsv"):
            raise InputError(f"output={FLAGS.output} must end in .tsv.")
        check_writable(FLAGS.output)


def read_sources():
    """The texts of --text, --input or standard input; empty ones too, as lines have their own."""
    from tfnlp.text.lines import lines_of
    from tfnlp.text.readers import read_every_text

    if FLAGS.text:
        return FLAGS.text
    if FLAGS.input:
        return list(read_every_text(FLAGS.input, FLAGS.text_column))
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(f"Standard input is not UTF-8 (byte {e.start}); convert it.") from None
    return lines_of(text)


def name_of_source(number):
    """What errors call the source of a number from 0."""
    if FLAGS.text:
        return f"--text number {number + 1}"
    return f"{FLAGS.input}, text {number + 1}" if FLAGS.input else f"Line {number + 1}"


def main():
    from tfnlp.checkpoints import load_model
    from tfnlp.generation import Beam, Greedy, Translator
    from tfnlp.generation.translations import one_line, translate_file, warn_of_cut
    from tfnlp.text import load_tokenizer
    from tfnlp.training.fingerprint import content_fingerprint, model_fingerprint

    sources = read_sources()
    how = Greedy()
    if FLAGS.beams > 1:
        how = Beam(FLAGS.beams, FLAGS.length_penalty, FLAGS.normalization, best=FLAGS.n_best)
    model = load_model(FLAGS.model_dir, "sequence_to_sequence")
    tokenizer = load_tokenizer(FLAGS.model_dir)
    translator = Translator(
        model,
        tokenizer,
        search=how,
        max_new_tokens=FLAGS.max_new_tokens,
        batch_size=FLAGS.batch_size,
    )
    # One too long is told before others are translated.
    ids = translator.source_ids(sources, name_of_source)
    if FLAGS.output:
        made_from = [ids, model_fingerprint(model), repr(how), FLAGS.max_new_tokens]
        made_from = content_fingerprint(made_from)
        columns = FLAGS.text_column, FLAGS.translation_column
        translate_file(translator, sources, FLAGS.output, made_from, columns)
        return
    found = translator(sources)
    for texts in found:
        for one in texts:
            score = "" if FLAGS.n_best == 1 else f"{one.score:.4f}\t"
            print(f"{score}{one_line(one.text)}")
    warn_of_cut((one.ended for texts in found for one in texts), translator)


if __name__ == "__main__":
    common.run(main, check=check)
