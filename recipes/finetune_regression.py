"""Fine-tunes a regression model for texts or pairs of texts, such as their similarity.

    python -m recipes.finetune_regression --model_dir=MODEL --train=korsts/train.tsv \\
        --dev=korsts/dev.tsv --output_dir=runs/likeness

The score is Pearson's correlation (--monitor=spearman for Spearman's). Without
--pair_column every text has a number by itself.
"""

from absl import flags

from recipes.flags import data_flags, task_flags
from recipes.shell import entry_point, finetuning_run
from tfnlp import tasks

FLAGS = flags.FLAGS
task_flags.define_regression_flags()
data_flags.define_split_flags()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    splits = task_flags.read_scored()
    train = splits["train"]
    task = tasks.Regression()
    finetuning_run.finetune(task, train.texts + (train.pairs or []), splits)


if __name__ == "__main__":
    entry_point.run(main)
