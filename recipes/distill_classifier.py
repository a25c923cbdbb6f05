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
from recipes.shell.command_line import refuse_beside
from tfnlp.tasks import kinds

FLAGS = flags.FLAGS
distillation_flags.define_flags()
task_flags.define_classification_data_flags()
task_flags.define_classification_score_flags()
task_flags.define_baseline_flag()


def main():
    distillation_flags.check_flags()
    if FLAGS.hard_label_weight == 0:
        place = "hard_label_weight=0, with which labels have no loss"
        refuse_beside(["focal_gamma", "class_weights", "probability_weight"], place)
    teacher_dir = distillation_flags.teacher_dirs()[0]
    kind = kinds.MULTI_LABEL_CLASSIFIER if FLAGS.multi_label else kinds.CLASSIFIER
    labels = learning.read_teacher_labels(teacher_dir, kind.head)
    task, splits = task_flags.read_classification(labels)
    if labels is None:
        task_flags.warn_of_unnamed(task.label_names)
    learning.check_teacher_reads(teacher_dir, splits["train"])
    distillation_run.distill(task, splits)


if __name__ == "__main__":
    entry_point.run(main)
