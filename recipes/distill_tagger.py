"""Distils a fine-tuned tagger into a smaller one.

    python -m recipes.distill_tagger --teacher_dir=runs/entities/best --train=wnut17/train.conll \\
        --dev=wnut17/dev.conll --num_layers=3 --output_dir=runs/student

The student has fewer layers and, with --hidden_dim, a smaller width, or is of another --family or
--size. It starts from the teacher's embeddings and the layers of --layer_map if the widths agree.
It learns from the labels and the teacher's soft labels and, by --method, from hidden states,
attention or others of the teacher's outputs. OUTPUT_DIR/best is a Hugging Face folder. It tags
words or characters, like its teacher.
"""

from distill import learning
from recipes.flags import data_flags, distillation_flags, task_flags
from recipes.shell import distillation_run, entry_point
from tfnlp import checkpoints, tasks

distillation_flags.define_flags()
task_flags.define_tagger_flags()
data_flags.define_split_flags()


def main():
    distillation_flags.check_flags()
    teacher_dir = distillation_flags.teacher_dirs()[0]
    labels = learning.read_teacher_labels(teacher_dir, tasks.Tagging.kind.head)
    unit = checkpoints.read_task_settings(teacher_dir).get("unit", "word")
    task, splits = task_flags.read_tagging(labels, unit)
    distillation_run.distill(task, splits)


if __name__ == "__main__":
    entry_point.run(main)
