"""Augments training texts: replaces words (TinyBERT's algorithm 1), or continues texts.

    python -m recipes.augment --model_dir=bert-base-uncased --input=train.tsv \\
        --vectors=glove.6B.300d.txt --output_dir=runs/augmented
    python -m recipes.augment --method=continue --model_dir=gpt2 --input=train.tsv \\
        --label=agree --teacher_dir=runs/teacher/best --output_dir=runs/augmented

replace: makes --copies copies of each text and replaces each word with --probability by one of
--candidates words. Candidates of a word that is a single token are the most probable ones by the
masked language model of --model_dir; those of other words are its neighbours in --vectors (text
format of GloVe or word2vec) or, without them, in the model's token embeddings. continue: keeps the
beginning of each text, and a causal language model writes the rest. OUTPUT_DIR/augmented.tsv has
the columns of --input, with the examples and their copies, without duplicates. The same seed gives
the same file; the same command resumes a killed run; with --runner an Apache Beam pipeline makes
the same file.
"""

from absl import flags

import tfnlp
from distill import learning
from recipes.flags import data_flags, dataclass_flags, runner_flags, training_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group, no_effect
from tfnlp import checkpoints, pipelines
from tfnlp.tasks.kinds import CLASSIFIER, named_head
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "input", None, "File of texts: .tsv, .csv, .json, .jsonl, .parquet or .txt, or with .gz."
)
data_flags.define_column_flags("sentence")
flags.DEFINE_string(
    "model_dir",
    None,
    "Folder of a language model, or its name on Hugging Face's Hub: a masked one to replace "
    "words, a causal one to continue texts.",
)
METHODS = {"replace": learning.ReplacementConfig, "continue": learning.ContinuationConfig}
flags.DEFINE_enum("method", "replace", list(METHODS), "Kind of augmentation.")
dataclass_flags.define_choice(METHODS, {"replace": {"copies": 20}, "continue": {"copies": 4}})
flags.DEFINE_bool("originals", True, "Write the examples themselves too.")
flags.DEFINE_integer("batch_size", 64, "Texts in a batch; it does not affect the result.", 1)
dataclass_flags.define(learning.ReplacementConfig, "seed")
flags.DEFINE_string("output_dir", None, "Folder to write augmented.tsv into.")
flags.mark_flags_as_required(["input", "model_dir", "output_dir"])
runner_flags.define()
with group("Labels"):
    flags.DEFINE_enum(
        "label",
        "keep",
        ["keep", "teacher", "agree"],
        "Label of a copy: that of its text, the teacher's, or that of its text if the teacher "
        "agrees (other copies are left out). Unnamed labels of a teacher get the sorted names of "
        "the column.",
    )
    flags.DEFINE_string(
        "label_column", None, "Column of the label, with teacher and agree; `label` if not given."
    )
    flags.DEFINE_string("teacher_dir", None, "Folder of the teacher, a fine-tuned classifier.")
with group("Replacing"):
    dataclass_flags.define(learning.ReplacementConfig, "probability", "candidates")
    flags.DEFINE_string("vectors", None, "File of word vectors, for words of several tokens.")
with group("Continuing"):
    names = ("kept", "max_tokens", "top_k", "temperature")
    dataclass_flags.define(learning.ContinuationConfig, *names)


def read_labels():
    """Return the labels of the teacher as the file of texts spells them; None with --label=keep.

    Raises:
        InputError: if --label and --teacher_dir conflict, or the teacher is not a classifier.
    """
    if FLAGS.label == "keep":
        if FLAGS.teacher_dir:
            raise no_effect("teacher_dir", "with --label=keep", "give --label=agree or teacher")
        return None
    if not FLAGS.teacher_dir:
        raise InputError(f"--label={FLAGS.label} needs the --teacher_dir that says the label.")
    kind = pipelines.read_kind(FLAGS.teacher_dir)
    if kind != CLASSIFIER:
        raise InputError(
            f"--teacher_dir={FLAGS.teacher_dir} holds the kind {kind}; labels are a classifier's."
        )
    return learning.labels_in_file(
        checkpoints.read_labels(FLAGS.teacher_dir),
        FLAGS.input,
        FLAGS.text_column,
        FLAGS.label_column or "label",
    )


def make_augmenter(labels):
    """Return the `Augmenter` of the flags.

    Raises:
        InputError: if the model does not have the head that --method needs.
    """
    replace = FLAGS.method == "replace"
    head = "masked_lm" if replace else "causal_lm"
    stored = checkpoints.read_head(FLAGS.model_dir)
    if stored != head and not (replace and stored in tfnlp.models.MASKED_LMS):
        raise InputError(
            f"--model_dir={FLAGS.model_dir} holds {named_head(stored)}, but "
            f"--method={FLAGS.method} needs one with {head!r}."
        )
    absolute = runner_flags.absolute
    return learning.Augmenter(
        model_dir=absolute(FLAGS.model_dir),
        config=dataclass_flags.read(METHODS[FLAGS.method]),
        vectors=absolute(FLAGS.vectors) if replace else None,
        teacher_dir=absolute(FLAGS.teacher_dir),
        labels=labels,
        batch_size=FLAGS.batch_size,
    )


def main():
    settings = training_flags.decisive_flags()
    for name in ("batch_size", "input"):  # the input is identified by its content
        del settings[name]
    map_shards = runner_flags.map_shards()
    entry_point.load_tensorflow()
    labels = read_labels()
    label_column = (FLAGS.label_column or "label") if labels else None
    learning.augment_file(
        make_augmenter(labels),
        FLAGS.input,
        FLAGS.output_dir,
        learning.TextColumns(FLAGS.text_column, FLAGS.pair_column, label_column),
        keep_labels=FLAGS.label == "agree",
        originals=FLAGS.originals,
        settings=settings,
        map_shards=map_shards,
    )


if __name__ == "__main__":
    entry_point.run(main)
