"""Fine-tunes a multiple-choice model to choose the best of several endings (SWAG, CODAH).

    python -m recipes.finetune_chooser --model_dir=MODEL --train=codah/train.tsv \\
        --dev=codah/dev.tsv --output_dir=runs/endings

Each line has a prompt, its choices (columns choice0, choice1, ... or ending0, ...) and the number
of the correct one, from 0.
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
task_flags.define_chooser_flags()
data_flags.define_split_flags()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    train, dev, test = task_flags.read_choices()
    task = tasks.MultipleChoice()
    texts = train.prompts + [ending for endings in train.endings for ending in endings]
    config, run = training_flags.start_run()
    with training.make_strategy(FLAGS.strategy).scope():
        model, tokenizer = model_flags.make_model(task, texts)
        finetuning_run.finetune(task, model, tokenizer, (train, dev, test), config=config, run=run)


if __name__ == "__main__":
    entry_point.run(main)
