"""Distils a regression model for texts or pairs of texts into a smaller one.

    python -m recipes.distill_regression --teacher_dir=runs/likeness/best \\
        --train=korsts/train.tsv --dev=korsts/dev.tsv --num_layers=3 --output_dir=runs/student

The student has fewer layers and, with --hidden_dim, a smaller width, or is of another --family or
--size. It starts from the teacher's embeddings and the layers of --layer_map if the widths agree.
It learns from the labels and the teacher's soft labels and, by --method, from hidden states,
attention or others of the teacher's outputs. OUTPUT_DIR/best is a Hugging Face folder.
"""

from absl import flags

from distill import learning
from recipes.flags import data_flags, distillation_flags, task_flags
from recipes.shell import distillation_run, entry_point
from tfnlp import tasks

FLAGS = flags.FLAGS
distillation_flags.define_flags()
task_flags.define_regression_flags()
data_flags.define_split_flags()


def main():
    distillation_flags.check_flags()
    splits = task_flags.read_scored()
    learning.check_teacher_reads(distillation_flags.teacher_dirs()[0], splits["train"])
    distillation_run.distill(tasks.Regression(), splits)


if __name__ == "__main__":
    entry_point.run(main)
