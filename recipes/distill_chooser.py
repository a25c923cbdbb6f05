"""Distils a multiple-choice model, which chooses the best ending, into a smaller one.

    python -m recipes.distill_chooser --teacher_dir=runs/endings/best --train=codah/train.tsv \\
        --dev=codah/dev.tsv --num_layers=3 --output_dir=runs/student

The student has fewer layers and, with --hidden_dim, a smaller width, or is of another --family or
--size. It starts from the teacher's embeddings and the layers of --layer_map if the widths agree.
It learns from the labels and the teacher's soft labels and, by --method, from hidden states,
attention or others of the teacher's outputs. OUTPUT_DIR/best is a Hugging Face folder.
"""

from recipes.flags import data_flags, distillation_flags, task_flags
from recipes.shell import distillation_run, entry_point
from tfnlp import tasks

distillation_flags.define_flags()
task_flags.define_chooser_flags()
task_flags.define_monitor_flag(["accuracy"])
data_flags.define_split_flags()


def main():
    distillation_flags.check_flags()
    splits = task_flags.read_choices()
    task = tasks.MultipleChoice()
    distillation_run.distill(task, splits)


if __name__ == "__main__":
    entry_point.run(main)
