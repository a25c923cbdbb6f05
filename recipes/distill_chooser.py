"""Distils a multiple-choice model, which chooses the best ending, into a smaller one.

    python -m recipes.distill_chooser --teacher_dir=runs/endings/best --train=codah/train.tsv \\
        --dev=codah/dev.tsv --num_layers=3 --output_dir=runs/student

The student has fewer layers, and a smaller width where --hidden_dim says so, or is of another
--family or --size. It starts from the teacher's embeddings and the layers of --layer_map where the
widths agree, and learns from the labels and the teacher's soft labels, and by --method what papers
add, such as its hidden states and attention scores. OUTPUT_DIR/best is a Hugging Face folder.
"""

from absl import flags

from recipes import common
from tfnlp import tasks

FLAGS = flags.FLAGS
common.define_chooser_flags()
common.define_distillation_flags()
common.define_split_flags()
common.define_training_flags(epochs=6, learning_rate=1e-4)


def main():

    columns = (FLAGS.prompt_column, FLAGS.choice_columns, FLAGS.label_column)
    train, dev = tasks.read_choices(FLAGS.train, *columns), tasks.read_choices(FLAGS.dev, *columns)
    test = tasks.read_choices(FLAGS.test, *columns) if FLAGS.test else None
    common.run_distillation(tasks.MultipleChoice(), train, dev, test)


if __name__ == "__main__":
    common.run(main, check=common.check_distillation)
