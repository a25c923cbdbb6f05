"""Distils an extractive question-answering model into a smaller one.

    python -m recipes.distill_answerer --teacher_dir=runs/answers/best \\
        --train=xquad_en/train.json --dev=xquad_en/dev.json --max_length=256 --num_layers=3 \\
        --output_dir=runs/student

The student has fewer layers and, with --hidden_dim, a smaller width, or is of another --family or
--size. It starts from the teacher's embeddings and the layers of --layer_map if the widths agree.
It learns from the labels and the teacher's soft labels and, by --method, from hidden states,
attention or others of the teacher's outputs. OUTPUT_DIR/best is a Hugging Face folder. The best
answers to each question of --dev go to OUTPUT_DIR/n_best.json, with their offsets in the text.
"""

from absl import flags

from recipes.flags import data_flags, dataclass_flags, distillation_flags, task_flags
from recipes.shell import distillation_run, entry_point
from tfnlp import tasks, training

FLAGS = flags.FLAGS
distillation_flags.define_flags()
task_flags.define_answerer_flags()
data_flags.define_split_flags()


def main():
    distillation_flags.check_flags()
    splits = task_flags.read_questions()
    task = dataclass_flags.read(tasks.QuestionAnswering)
    distillation_run.distill(task, splits)
    training.write_n_best(task, FLAGS.output_dir, splits["dev"], FLAGS.max_length, FLAGS.n_best)


if __name__ == "__main__":
    entry_point.run(main)
