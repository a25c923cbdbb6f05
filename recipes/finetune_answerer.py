"""Fine-tunes a model for extractive question answering, as in SQuAD.

    python -m recipes.finetune_answerer --model_dir=MODEL --train=xquad_en/train.json \\
        --dev=xquad_en/dev.json --max_length=256 --output_dir=runs/answers

Files are in the JSON of SQuAD 1.1 or, with --null_answers, 2.0. Long texts are read in windows.
The scores are F1 and exact match by SQuAD's rules; the best answers to each question of --dev
go to OUTPUT_DIR/n_best.json, with their places in the text.
"""

from absl import flags

from recipes import common, compression_flags, model_flags
from tfnlp import tasks

FLAGS = flags.FLAGS
common.define_answerer_flags()
model_flags.define_model_flags()
common.define_split_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)
common.define_adversarial_flags()
compression_flags.define_training_flags()


def main():

    train, dev = (
        tasks.read_questions(path, FLAGS.null_answers) for path in (FLAGS.train, FLAGS.dev)
    )
    test = tasks.read_questions(FLAGS.test, FLAGS.null_answers) if FLAGS.test else None
    task = tasks.QuestionAnswering(FLAGS.stride, FLAGS.null_answers, FLAGS.max_question_length)
    texts = [*dict.fromkeys(train.contexts), *train.questions]
    common.finetune(task, lambda: model_flags.make_model(task, texts), train, dev, test)
    sizes = FLAGS.max_length, FLAGS.n_best, FLAGS.block_size
    tasks.write_n_best(task, FLAGS.output_dir, dev, *sizes)


if __name__ == "__main__":
    common.run(main, check=model_flags.check_flags)
