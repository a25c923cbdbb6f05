"""Fine-tunes a model of any family to classify texts or pairs of texts.

From a Hugging Face folder:

    python -m recipes.finetune_classifier --model_dir=MiniLM-L6 --train=train.tsv \\
        --dev=dev.tsv --output_dir=runs/teacher

Without --model_dir a model of any --family or --size starts from random weights, with a vocabulary
learned from the training texts (and from --vocabulary_text), or that of --tokenizer_dir. Long
texts take a fraction of the memory with --block_size:

    python -m recipes.finetune_classifier --family=xlnet --num_layers=2 --hidden_dim=128 \\
        --train=train.tsv --dev=dev.tsv --max_length=1024 --block_size=256 --output_dir=runs/long

The folder of the best epoch, OUTPUT_DIR/best, loads with transformers and feeds the other recipes.
"""

from absl import flags

from recipes import common, compression_flags, model_flags
from tfnlp import tasks

FLAGS = flags.FLAGS
model_flags.define_model_flags()
common.define_data_flags()
common.define_classification_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)
common.define_adversarial_flags()
compression_flags.define_training_flags()


def main():

    train, dev, test = common.read_splits()
    task = tasks.Classification(train.label_names, FLAGS.monitor, FLAGS.positive_label)
    texts = train.texts + (train.pairs or [])
    common.finetune(task, lambda: model_flags.make_model(task, texts), train, dev, test)


if __name__ == "__main__":
    common.run(main, check=model_flags.check_flags)
