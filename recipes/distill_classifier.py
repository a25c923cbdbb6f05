"""Distils a fine-tuned classifier into a smaller one.

    python -m recipes.distill_classifier --teacher_dir=runs/teacher/best --train=train.tsv \\
        --dev=dev.tsv --num_layers=3 --output_dir=runs/student

The student has fewer layers and, with --hidden_dim, a smaller width, or is of another --family or
--size. It starts from the teacher's embeddings and the layers of --layer_map if the widths agree.
It learns from the labels and the teacher's soft labels and, by --method, from hidden states,
attention or others of the teacher's outputs. OUTPUT_DIR/best is a Hugging Face folder.
"""

from absl import flags

from distill import learning
from recipes.flags import distillation_flags, task_flags
from recipes.shell import distillation_run, entry_point
from tfnlp import tasks, text

FLAGS = flags.FLAGS
distillation_flags.define_flags()
task_flags.define_classification_data_flags()
task_flags.define_classification_score_flags()
task_flags.define_baseline_flag()


def main():
    distillation_flags.check_flags()
    text.check_positive_label(None, FLAGS.monitor, FLAGS.positive_label)
    teacher_dir = distillation_flags.teacher_dirs()[0]
    labels = learning.read_teacher_labels(teacher_dir, tasks.Classification.kind.head)
    splits = task_flags.read_labelled(labels)
    if labels is None:
        task_flags.warn_of_unnamed(splits["train"].label_names)
    scores = FLAGS.monitor, FLAGS.positive_label, FLAGS.baseline
    task = tasks.Classification(splits["train"].label_names, *scores)
    distillation_run.distill(task, splits)


if __name__ == "__main__":
    entry_point.run(main)
