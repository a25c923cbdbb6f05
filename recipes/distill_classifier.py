"""Distils a fine-tuned classifier into a smaller one.

    python -m recipes.distill_classifier --teacher_dir=runs/teacher/best --train=train.tsv \\
        --dev=dev.tsv --num_layers=3 --output_dir=runs/student

The student has fewer layers, and a smaller width where --hidden_dim says so, or is of another
--family or --size. It starts from the teacher's embeddings and the layers of --layer_map where the
widths agree, and learns from the labels and the teacher's soft labels, and by --method what papers
add, such as its hidden states and attention scores. OUTPUT_DIR/best is a Hugging Face folder.
"""

from absl import flags

from recipes import common
from tfnlp import tasks

FLAGS = flags.FLAGS
common.define_distillation_flags()
common.define_data_flags()
common.define_classification_flags()
common.define_training_flags(epochs=6, learning_rate=1e-4)


def main():

    labels = common.teacher_labels(tasks.Classification.head)
    train, dev, test = common.read_splits(labels)
    if labels is None:
        common.warn_of_unnamed(train.label_names)
    task = tasks.Classification(train.label_names, FLAGS.monitor, FLAGS.positive_label)
    common.run_distillation(task, train, dev, test)


if __name__ == "__main__":
    common.run(main, check=common.check_distillation)
