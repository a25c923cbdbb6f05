"""Distils a regression model for texts or pairs of texts into a smaller one.

    python -m recipes.distill_regression --teacher_dir=runs/likeness/best \\
        --train=korsts/train.tsv --dev=korsts/dev.tsv --num_layers=3 --output_dir=runs/student

The student has fewer layers, and a smaller width where --hidden_dim says so, or is of another
--family or --size. It starts from the teacher's embeddings and the layers of --layer_map where the
widths agree, and learns from the labels and the teacher's numbers (which have no --temperature),
and by --method what papers add, such as its hidden states and attention scores. OUTPUT_DIR/best is
a Hugging Face folder.
"""

from absl import flags

from recipes import common
from tfnlp import tasks

FLAGS = flags.FLAGS
flags.DEFINE_string("text_column", "sentence1", "Column of the text.")
flags.DEFINE_string("pair_column", "sentence2", "Column of the second text; empty for none.")
flags.DEFINE_string("score_column", "score", "Column of the number.")
flags.DEFINE_enum("monitor", "pearson", ["pearson", "spearman"], "What picks the best epoch.")
common.define_distillation_flags()
common.define_split_flags()
common.define_training_flags(epochs=6, learning_rate=1e-4)


def main():

    columns = (FLAGS.text_column, FLAGS.pair_column, FLAGS.score_column)
    train, dev = (tasks.read_scored_pairs(path, *columns) for path in (FLAGS.train, FLAGS.dev))
    test = tasks.read_scored_pairs(FLAGS.test, *columns) if FLAGS.test else None
    common.run_distillation(tasks.Regression(FLAGS.monitor), train, dev, test)


if __name__ == "__main__":
    common.run(main, check=common.check_distillation)
