"""Distils an extractive question-answering model into a smaller one.

    python -m recipes.distill_answerer --teacher_dir=runs/answers/best \\
        --train=xquad_en/train.json --dev=xquad_en/dev.json --max_length=256 --num_layers=3 \\
        --output_dir=runs/student

The student has fewer layers, and a smaller width where --hidden_dim says so, or is of another
--family or --size. It starts from the teacher's embeddings and the layers of --layer_map where the
widths agree, and learns from the answers and the teacher's probabilities of their places, and by
--method what papers add, such as its hidden states and attention scores. OUTPUT_DIR/best is a
Hugging Face folder; the best answers to each question of --dev go to OUTPUT_DIR/n_best.json, with
their places in the text.
"""

from absl import flags

from recipes import common
from tfnlp import tasks

FLAGS = flags.FLAGS
common.define_answerer_flags()
common.define_distillation_flags()
common.define_split_flags()
common.define_training_flags(epochs=6, learning_rate=1e-4)


def main():

    train, dev = (
        tasks.read_questions(path, FLAGS.null_answers) for path in (FLAGS.train, FLAGS.dev)
    )
    test = tasks.read_questions(FLAGS.test, FLAGS.null_answers) if FLAGS.test else None
    task = tasks.QuestionAnswering(FLAGS.stride, FLAGS.null_answers, FLAGS.max_question_length)
    common.run_distillation(task, train, dev, test)
    tasks.write_n_best(task, FLAGS.output_dir, dev, FLAGS.max_length, FLAGS.n_best)


if __name__ == "__main__":
    common.run(main, check=common.check_distillation)
