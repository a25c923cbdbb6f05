"""Fine-tunes a regression model for texts or pairs of texts, such as their similarity.

    python -m recipes.finetune_regression --model_dir=MODEL --train=korsts/train.tsv \\
        --dev=korsts/dev.tsv --output_dir=runs/likeness

The score is Pearson's correlation (--monitor=spearman for Spearman's). Without
--pair_column every text has a number by itself.
"""

from absl import flags

from recipes import (
    data_flags,
    entry_point,
    finetuning_run,
    model_flags,
    task_flags,
    training_flags,
)
from tfnlp import tasks, training

FLAGS = flags.FLAGS
task_flags.define_regression_flags()
data_flags.define_split_flags()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    train, dev, test = task_flags.read_scored()
    task = tasks.Regression(FLAGS.monitor)
    config, run = training_flags.start_run()
    with training.make_strategy(FLAGS.strategy).scope():
        model, tokenizer = model_flags.make_model(task, train.texts + (train.pairs or []))
        finetuning_run.finetune(task, model, tokenizer, (train, dev, test), config=config, run=run)


if __name__ == "__main__":
    entry_point.run(main)
