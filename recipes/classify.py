"""Classifies texts with an exported .tflite file.

    python -m recipes.classify --model=runs/export/model.tflite --text="a fine film"
    python -m recipes.classify --model=runs/export/model.tflite --input=dev.tsv \\
        --output_dir=runs/answers

prints (or writes to OUTPUT_DIR/predictions.tsv) the label and its probability before each
text. Where the file has labels, the accuracy is printed too.
"""

from absl import flags

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "The .tflite file.")
flags.DEFINE_multi_string("text", [], "A text to classify; may be given again.")
flags.DEFINE_string("input", None, "File of texts: .tsv, .csv, .jsonl or .txt, or with .gz.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_string("pair_column", None, "Column of the second text, for pairs.")
flags.DEFINE_string("label_column", None, "Column of the label, to score against.")
flags.DEFINE_string("output_dir", None, "Folder to write predictions.tsv into.")
flags.DEFINE_integer("num_threads", 1, "Threads of LiteRT.", 1)
flags.mark_flag_as_required("model")


def main():
    from distill.device.predictions import classify_examples, print_predictions, write_predictions
    from distill.runtime import TextClassifier
    from tfnlp.errors import InputError
    from tfnlp.text import Examples, read_examples

    if bool(FLAGS.text) == bool(FLAGS.input):
        raise InputError("Give either --text or --input.")
    classifier = TextClassifier(FLAGS.model, FLAGS.num_threads)
    examples = Examples(FLAGS.text)
    if FLAGS.input:
        examples = read_examples(
            FLAGS.input,
            FLAGS.text_column,
            FLAGS.pair_column,
            FLAGS.label_column,
            classifier.labels,
        )
    predictions = classify_examples(classifier, examples)
    if FLAGS.output_dir:
        write_predictions(FLAGS.output_dir, examples, predictions)
    else:
        print_predictions(examples, predictions)


if __name__ == "__main__":
    common.run(main, tensorflow=False)
