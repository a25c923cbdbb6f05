"""Augments training texts: replaces words (TinyBERT's algorithm 1), or continues texts.

    python -m recipes.augment --model_dir=bert-base-uncased --input=train.tsv \\
        --vectors=glove.6B.300d.txt --output_dir=runs/augmented
    python -m recipes.augment --method=continue --model_dir=gpt2 --input=train.tsv \\
        --label=agree --teacher_dir=runs/teacher/best --output_dir=runs/augmented

replace: in each of --copies copies each word is replaced with --probability by one of --candidates
words: where the word is one piece of the tokenizer, the most probable ones by the masked language
model of --model_dir; where it is in pieces, its neighbours in --vectors (GloVe's or word2vec's
text format) or, without them, in the model's own token table. continue: the beginning of each text
is kept, and a causal language model writes the rest. OUTPUT_DIR/augmented.tsv has the columns of
--input, the examples themselves and their copies, none twice. The same seed gives the same file; a
killed run goes on.
"""

from absl import flags

import tfnlp
from distill import learning
from recipes import common
from recipes.command_line import group
from tfnlp import checkpoints, pipelines, text
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_writable

FLAGS = flags.FLAGS
flags.DEFINE_string("input", None, "File of texts: .tsv, .csv, .json, .jsonl, .txt, or with .gz.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_string("pair_column", None, "Column of the second text, which is augmented too.")
flags.DEFINE_string(
    "model_dir",
    None,
    "Folder of a language model, or its name on Hugging Face's Hub: a masked one to replace "
    "words, a causal one to continue texts.",
)
flags.DEFINE_enum("method", "replace", ["replace", "continue"], "How copies are made.")
flags.DEFINE_integer("copies", None, "Copies of each text; 20, or 4 to continue.", 1)
flags.DEFINE_bool("originals", True, "Whether the examples themselves are written too.")
flags.DEFINE_integer("batch_size", 64, "Texts in a batch; the result is the same.", 1)
flags.DEFINE_integer("seed", 0, "Seed of the draws.", 0)
flags.DEFINE_string("output_dir", None, "Folder to write augmented.tsv into.")
flags.mark_flags_as_required(["input", "model_dir", "output_dir"])


@group("Labels")
def define_label_flags():
    """Define the flags of a copy's label."""
    flags.DEFINE_enum(
        "label",
        "keep",
        ["keep", "teacher", "agree"],
        "A copy's label: that of its text, the teacher's, or its text's where the teacher agrees "
        "(else it is left out). A teacher's labels without names are the column's, sorted.",
    )
    flags.DEFINE_string(
        "label_column", None, "Column of the label, for teacher and agree; `label` if not given."
    )
    flags.DEFINE_string("teacher_dir", None, "Folder of the fine-tuned teacher, a classifier.")


@group("Replacing")
def define_replacement_flags():
    """Define the flags of --method=replace."""
    flags.DEFINE_float("probability", 0.4, "Of a word to be replaced.", 0, 1)
    flags.DEFINE_integer("candidates", 15, "Words that a word may be replaced by.", 1)
    flags.DEFINE_string("vectors", None, "File of word vectors, for words in pieces.")


@group("Continuing")
def define_continuation_flags():
    """Define the flags of --method=continue."""
    flags.DEFINE_float("kept", 0.5, "Share of a text's words that are kept.", 0, 1)
    flags.DEFINE_integer("max_tokens", 32, "Most tokens that are written.", 1)
    flags.DEFINE_integer("top_k", 40, "Tokens to draw from at each place.", 1)
    flags.DEFINE_float("temperature", 1.0, "By which logits are divided.", 1e-3)


define_label_flags()
define_replacement_flags()
define_continuation_flags()


def make_judge():
    """Return a function from (texts, pairs) to the teacher's labels; None with --label=keep.

    Raises:
        InputError: if --label and --teacher_dir conflict, or the teacher is not a classifier.
    """

    if FLAGS.label == "keep":
        if FLAGS.teacher_dir:
            raise InputError(
                f"--teacher_dir={FLAGS.teacher_dir} has no effect with --label=keep; give "
                "--label=agree or --label=teacher, or leave it out."
            )
        return None
    if not FLAGS.teacher_dir:
        raise InputError(f"--label={FLAGS.label} needs the --teacher_dir that says the label.")
    kind = pipelines.read_kind(FLAGS.teacher_dir)
    if kind != "classifier":
        raise InputError(
            f"--teacher_dir={FLAGS.teacher_dir} holds the kind {kind}; labels are a classifier's."
        )
    teacher = pipelines.load_runner(FLAGS.teacher_dir, FLAGS.batch_size)
    teacher.labels = learning.labels_in_file(
        teacher.labels, FLAGS.input, FLAGS.text_column, FLAGS.label_column or "label"
    )
    return lambda texts, pairs: [found.label for found in teacher.classify(texts, pairs)]


def make_augmenter():
    """Build the `WordReplacer` or `TextContinuer` of the flags.

    Raises:
        InputError: if the model does not have the head that --method needs.
    """

    replace = FLAGS.method == "replace"
    head = "masked_lm" if replace else "causal_lm"
    stored = checkpoints.read_head(FLAGS.model_dir)
    if stored != head and not (replace and stored in tfnlp.models.MASKED_LMS):
        held = f"a model with the head {stored!r}" if stored else "an encoder without a head"
        raise InputError(
            f"--model_dir={FLAGS.model_dir} holds {held}, but --method={FLAGS.method} needs one "
            f"with {head!r}."
        )
    vectors = None
    if FLAGS.vectors:  # before the model, to report a malformed line sooner
        vectors = learning.WordVectors.from_file(FLAGS.vectors)
    model, tokenizer = (
        checkpoints.load_model(FLAGS.model_dir, head),
        text.load_tokenizer(FLAGS.model_dir),
    )
    if not replace:
        config = learning.ContinuationConfig(
            FLAGS.copies or 4,
            FLAGS.kept,
            FLAGS.max_tokens,
            FLAGS.top_k,
            FLAGS.temperature,
            seed=FLAGS.seed,
        )
        return learning.TextContinuer(model, tokenizer, config, FLAGS.batch_size)
    vectors = vectors or learning.WordVectors.of_model(model, tokenizer)
    config = learning.ReplacementConfig(
        FLAGS.probability, FLAGS.copies or 20, FLAGS.candidates, FLAGS.seed
    )
    return learning.WordReplacer(model, tokenizer, vectors, config, FLAGS.batch_size)


def main():

    check_writable(f"{FLAGS.output_dir}/augmented.tsv")
    settings = common.decisive_flags()
    for name in ("batch_size", "input"):  # the input is identified by its content
        del settings[name]
    judge = make_judge()
    learning.augment_file(
        make_augmenter(),
        FLAGS.input,
        FLAGS.output_dir,
        learning.TextColumns(
            FLAGS.text_column,
            FLAGS.pair_column,
            (FLAGS.label_column or "label") if judge else None,
        ),
        judge,
        keep_labels=FLAGS.label == "agree",
        originals=FLAGS.originals,
        settings=settings,
    )


if __name__ == "__main__":
    common.run(main)
