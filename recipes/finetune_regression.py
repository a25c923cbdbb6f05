"""Fine-tunes a regression model for texts or pairs of texts, such as their similarity.

    python -m recipes.finetune_regression --model_dir=MODEL --train=korsts/train.tsv \\
        --dev=korsts/dev.tsv --output_dir=runs/likeness

The score is Pearson's correlation (--monitor=spearman for Spearman's). Without
--pair_column every text has a number by itself.
"""

from absl import flags

from recipes import common, compression_flags, model_flags
from tfnlp import tasks

FLAGS = flags.FLAGS
flags.DEFINE_string("text_column", "sentence1", "Column of the text.")
flags.DEFINE_string("pair_column", "sentence2", "Column of the second text; empty for none.")
flags.DEFINE_string("score_column", "score", "Column of the number.")
flags.DEFINE_enum("monitor", "pearson", ["pearson", "spearman"], "What picks the best epoch.")
model_flags.define_model_flags()
common.define_split_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)
common.define_adversarial_flags()
compression_flags.define_training_flags()


def main():

    columns = (FLAGS.text_column, FLAGS.pair_column, FLAGS.score_column)
    train, dev = (tasks.read_scored_pairs(path, *columns) for path in (FLAGS.train, FLAGS.dev))
    test = tasks.read_scored_pairs(FLAGS.test, *columns) if FLAGS.test else None
    task = tasks.Regression(FLAGS.monitor)
    texts = train.texts + (train.pairs or [])
    common.finetune(task, lambda: model_flags.make_model(task, texts), train, dev, test)


if __name__ == "__main__":
    common.run(main, check=model_flags.check_flags)
