"""Fine-tunes a multiple-choice model to choose the best of several endings (SWAG, CODAH).

    python -m recipes.finetune_chooser --model_dir=MODEL --train=codah/train.tsv \\
        --dev=codah/dev.tsv --output_dir=runs/endings

Each line has a beginning, its endings (columns choice0, choice1, ... or ending0, ..., in the
order of their numbers) and the number of the right one, from 0.
"""

from absl import flags

from recipes import common, compression_flags, model_flags
from tfnlp import tasks

FLAGS = flags.FLAGS
common.define_chooser_flags()
model_flags.define_model_flags()
common.define_split_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)
common.define_adversarial_flags()
compression_flags.define_training_flags()


def main():

    columns = (FLAGS.prompt_column, FLAGS.choice_columns, FLAGS.label_column)
    train, dev = tasks.read_choices(FLAGS.train, *columns), tasks.read_choices(FLAGS.dev, *columns)
    test = tasks.read_choices(FLAGS.test, *columns) if FLAGS.test else None
    task = tasks.MultipleChoice()
    texts = train.prompts + [ending for endings in train.endings for ending in endings]
    common.finetune(task, lambda: model_flags.make_model(task, texts), train, dev, test)


if __name__ == "__main__":
    common.run(main, check=model_flags.check_flags)
