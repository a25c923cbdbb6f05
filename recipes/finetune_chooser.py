"""Fine-tunes a multiple-choice model to choose the best of several endings (SWAG, CODAH).

    python -m recipes.finetune_chooser --model_dir=MODEL --train=codah/train.tsv \\
        --dev=codah/dev.tsv --output_dir=runs/endings

Each line has a prompt, its choices (columns choice0, choice1, ... or ending0, ...) and the number
of the correct one, from 0.
"""

from recipes.flags import data_flags, task_flags
from recipes.shell import entry_point, finetuning_run
from tfnlp import tasks

task_flags.define_chooser_flags()
task_flags.define_monitor_flag(["accuracy"])
data_flags.define_split_flags()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    splits = task_flags.read_choices()
    train = splits["train"]
    task = tasks.MultipleChoice()
    texts = train.prompts + [ending for endings in train.endings for ending in endings]
    finetuning_run.finetune(task, texts, splits)


if __name__ == "__main__":
    entry_point.run(main)
