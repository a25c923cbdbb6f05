"""Fine-tunes a BERT to classify texts or pairs of texts.

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
flags.DEFINE_string("model_dir", None, "Hugging Face BERT folder to start from.")
flags.DEFINE_integer("num_layers", 4, "From scratch: encoder blocks.", 1)
flags.DEFINE_integer("hidden_dim", 256, "From scratch: model width.", 1)
flags.DEFINE_integer("num_heads", 4, "From scratch: attention heads.", 1)
flags.DEFINE_integer("vocabulary_size", 8000, "From scratch: tokens to learn.", 10)
flags.DEFINE_string("vocabulary_text", None, "From scratch: further text for the vocabulary.")
common.define_data_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)


def main():
    import keras

    from tfnlp.checkpoints import load_model, save_model
    from tfnlp.models import BertConfig, bert_classifier
    from tfnlp.text import WordPieceTokenizer, read_examples, train_wordpiece
    from tfnlp.training import (
        RunFolder,
        compile_classifier,
        fit,
        make_strategy,
        set_precision,
    )
    from tfnlp.training.report import report_classifier

    run = RunFolder(FLAGS.output_dir, common.decisive_flags())
    train, dev, test = common.read_splits()
    keras.utils.set_random_seed(FLAGS.seed)
    set_precision(FLAGS.precision)
    config = common.training_config()
    with make_strategy(FLAGS.strategy).scope():
        if FLAGS.model_dir:
            tokenizer = WordPieceTokenizer.from_folder(FLAGS.model_dir)
            model = load_model(FLAGS.model_dir, "classifier", len(train.label_names))
        else:
            texts = train.texts + (train.pairs or [])
            if FLAGS.vocabulary_text:
                texts += read_examples(FLAGS.vocabulary_text, label_column=None).texts
            tokenizer = train_wordpiece(texts, FLAGS.vocabulary_size)
            model = bert_classifier(
                BertConfig(
                    vocabulary_size=tokenizer.vocabulary_size,
                    num_layers=FLAGS.num_layers,
                    num_heads=FLAGS.num_heads,
                    hidden_dim=FLAGS.hidden_dim,
                    intermediate_dim=4 * FLAGS.hidden_dim,
                ),
                len(train.label_names),
            )
        common.check_fit(model, tokenizer)
        batches = common.batches_of(tokenizer, train, shuffle=True)
        trained = compile_classifier(model, config.optimizer(model, len(batches)))

    def save_best():
        save_model(model, run.best, train.label_names, tokenizer)

    dev_batches = common.batches_of(tokenizer, dev)
    fit(trained, batches, config, run, save_best, dev_batches)
    test_batches = common.batches_of(tokenizer, test) if test else None
    report_classifier(run, train.label_names, dev_batches, test_batches)


if __name__ == "__main__":
    common.run(main)
