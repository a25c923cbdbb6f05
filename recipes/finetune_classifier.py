"""Fine-tunes a model of any family to classify texts or pairs of texts.

From a Hugging Face folder:

    python -m recipes.finetune_classifier --model_dir=MiniLM-L6 --train=train.tsv \\
        --dev=dev.tsv --output_dir=runs/teacher

Without --model_dir a small BERT starts from random weights, with a WordPiece vocabulary
learned from the training texts (and from --vocabulary_text). The folder of the best epoch,
OUTPUT_DIR/best, loads with transformers and feeds the other recipes.
"""

from absl import flags

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Hugging Face folder to start from.")
flags.DEFINE_integer("num_layers", 4, "From scratch: encoder blocks.", 1)
flags.DEFINE_integer("hidden_dim", 256, "From scratch: model width.", 1)
flags.DEFINE_integer("num_heads", 4, "From scratch: attention heads.", 1)
flags.DEFINE_integer("vocabulary_size", 8000, "From scratch: tokens to learn.", 10)
flags.DEFINE_string("vocabulary_text", None, "From scratch: further text for the vocabulary.")
flags.DEFINE_enum(
    "monitor", "accuracy", ["accuracy", "matthews", "f1"], "Score that picks the best epoch."
)
common.define_data_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)
common.define_adversarial_flags()


def main():
    from tfnlp.tasks import Classification

    train, dev, test = common.read_splits()

    def from_scratch():
        from tfnlp.models import BertConfig, build_model
        from tfnlp.text import read_examples, train_wordpiece

        texts = train.texts + (train.pairs or [])
        if FLAGS.vocabulary_text:
            texts += read_examples(FLAGS.vocabulary_text, label_column=None).texts
        tokenizer = train_wordpiece(texts, FLAGS.vocabulary_size)
        config = BertConfig(
            vocabulary_size=tokenizer.vocabulary_size,
            num_layers=FLAGS.num_layers,
            num_heads=FLAGS.num_heads,
            hidden_dim=FLAGS.hidden_dim,
            intermediate_dim=4 * FLAGS.hidden_dim,
        )
        return build_model(config, "classifier", len(train.label_names)), tokenizer

    task = Classification(train.label_names, FLAGS.monitor)
    common.finetune(task, train, dev, test, None if FLAGS.model_dir else from_scratch)


if __name__ == "__main__":
    common.run(main)
