"""Distils a model of sentence vectors into a smaller one, on texts without labels.

    python -m recipes.distill_embedder --teacher_dir=all-MiniLM-L6-v2 --train=texts.txt \\
        --num_layers=3 --keep_tokens=15000 --output_dir=runs/student

The student learns the teacher's vector of each text, and how near the teacher's vectors of a
batch are to each other. A student of another width gets a projection to the teacher's, so that
both can be searched together.

    python -m recipes.distill_embedder --teacher_dir=all-MiniLM-L6-v2 --train=translated.tsv \\
        --train_columns=english,korean --translations --student_dir=multilingual ...

With --translations, the student learns for each column the teacher's vector of the first one.
OUTPUT_DIR/best is a folder of sentence-transformers; export_tflite makes a file of it.
"""

from absl import flags

from distill import learning
from recipes.flags import data_flags, dataclass_flags, distillation_flags, task_flags
from recipes.shell import distillation_run, entry_point
from recipes.shell.command_line import group, no_effect
from tfnlp import checkpoints, pipelines, tasks, text
from tfnlp.tasks.vector_settings import VectorSettings
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
distillation_flags.define_flags(labelled=False)
with group("Distillation"):
    flags.DEFINE_float(
        "similarity_weight",
        1.0,
        "Weight of the cosines of a batch's texts with each other.",
        0,
    )
    dataclass_flags.define(VectorSettings, "matryoshka_dims")
with group("Data"):
    flags.DEFINE_list(
        "train",
        None,
        "Files of texts: .tsv, .csv, .json, .jsonl, .parquet, else a text on each line; or .gz.",
    )
    flags.DEFINE_list("train_columns", ["sentence"], "Columns of the texts, in tables.")
    flags.DEFINE_bool(
        "translations",
        False,
        "Whether the columns have one text in several languages, first the teacher's.",
    )
    flags.DEFINE_string(
        "dev",
        None,
        "Pairs of texts to select the best epoch by; if not given, pairs of texts that are left "
        "out of --train, with the teacher's cosines as scores.",
    )
    data_flags.define_further_dev_flag()
    flags.DEFINE_string("test", None, "Pairs of texts to evaluate the best epoch on, if given.")
    flags.mark_flag_as_required("train")
task_flags.define_pooling_flag("of an encoder that is no folder of sentence-transformers")
task_flags.define_text_group_flags(
    "Columns of two texts that are alike, in --dev and --test.",
    "Column of the number, how alike they are; if not given, first texts look for second ones.",
    folder="teacher_dir",
)


def main():
    distillation_flags.check_flags()
    check_flags()
    scored = FLAGS.score_column or not FLAGS.dev
    settings = dataclass_flags.read(
        VectorSettings, loss="cosent" if scored else "ranking", num_texts=2
    )
    task = learning.VectorImitation(settings, *task_flags.read_prompts(FLAGS.teacher_dir))
    read_train = learning.read_translations if FLAGS.translations else learning.read_unlabelled
    splits = data_flags.read_splits(
        lambda path: tasks.read_text_groups(path, FLAGS.text_columns, FLAGS.score_column),
        lambda paths: read_train(paths, FLAGS.train_columns),
    )
    if not FLAGS.dev:
        embed = load_teacher(task).embed
        held_out = learning.hold_out_pairs(splits["train"], embed, task.prompts)
        splits["train"], splits["dev"] = held_out
    splits["train"] = task.with_prompts(splits["train"])
    originals = splits["train"].originals
    distillation_run.distill(task, splits, originals and learning.PlainTexts(originals))


def load_teacher(task):
    """Return the pipeline of the teacher, which adds no prompts."""
    model = distillation_run.load_teacher(FLAGS.teacher_dir, task)
    settings = {"max_length": FLAGS.max_length}
    tokenizer = text.load_tokenizer(FLAGS.teacher_dir)
    return pipelines.pipeline_of(pipelines.KerasBackend(model, tokenizer, settings=settings))


def check_flags():
    """Raise an InputError for conflicting flags of the distillation of vectors."""
    if len(distillation_flags.teacher_dirs()) > 1:
        raise InputError(
            f"teacher_dir={FLAGS.teacher_dir}: vectors of several teachers lie in different "
            "spaces; give one."
        )
    if FLAGS.matryoshka_dims and not FLAGS.similarity_weight:
        raise no_effect("matryoshka_dims", "with similarity_weight=0, which trains them")
    if FLAGS.translations and distillation_flags.compares_tokens():
        raise InputError(
            f"method={FLAGS.method} compares tokens, which translations do not share; give "
            "method=logits without weights of states."
        )
    if FLAGS.similarity_weight and FLAGS.accumulation_steps > 1:
        raise InputError(
            f"accumulation_steps={FLAGS.accumulation_steps} compares the texts of a part of a "
            "batch only; leave it out, or give similarity_weight=0."
        )
    if not (FLAGS.pooling or checkpoints.read_head(FLAGS.teacher_dir)):
        raise InputError(
            f"teacher_dir={FLAGS.teacher_dir} is an encoder without modules of "
            "sentence-transformers; give `pooling`, such as mean."
        )


if __name__ == "__main__":
    entry_point.run(main)
