"""Distils a fine-tuned tagger into a smaller one.

    python -m recipes.distill_tagger --teacher_dir=runs/entities/best --train=wnut17/train.conll \\
        --dev=wnut17/dev.conll --num_layers=3 --output_dir=runs/student

The student has fewer layers, and a smaller width where --hidden_dim says so, or is of another
--family or --size. It starts from the teacher's embeddings and the layers of --layer_map where the
widths agree, and learns from the labels and the teacher's soft labels, and by --method what papers
add, such as its hidden states and attention scores. It tags words or characters as its teacher
does. OUTPUT_DIR/best is a Hugging Face folder.
"""

from absl import flags

from recipes import common
from tfnlp import checkpoints, tasks, text

FLAGS = flags.FLAGS
common.define_tagger_flags()
common.define_distillation_flags()
common.define_split_flags()
common.define_training_flags(epochs=6, learning_rate=1e-4)


def main():

    labels = common.teacher_labels(tasks.Tagging.head)
    unit = checkpoints.read_task_settings(common.teacher_dirs()[0]).get("unit", "word")
    options = labels, unit, FLAGS.comment_prefix
    train, dev = (tasks.read_tagged(path, *options) for path in (FLAGS.train, FLAGS.dev))
    test = tasks.read_tagged(FLAGS.test, *options) if FLAGS.test else None
    # At inference, texts are split into words as in these sentences.
    splitter = text.WordSplitter.from_sentences(train.sentences) if unit == "word" else None
    task = tasks.Tagging(labels, FLAGS.stride, unit, splitter)
    common.run_distillation(task, train, dev, test)


if __name__ == "__main__":
    common.run(main, check=common.check_distillation)
