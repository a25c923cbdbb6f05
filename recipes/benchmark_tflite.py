"""Measures an exported .tflite file: size, latency, peak memory, agreement with Keras.

    python -m recipes.benchmark_tflite --model=runs/export/model.tflite \\
        --model_dir=runs/student/best --input=dev.tsv --output_dir=runs/benchmark

Latency is the median of --repeats runs at 16, 32, 64 and 128 tokens, with 1 and 2 threads;
peak memory is that of a process that only runs the file. Agreement is the share of the texts
of --input to which the file and the Keras model of --model_dir give the same label.
"""

from absl import flags

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "The .tflite file.")
flags.DEFINE_string("model_dir", None, "Folder of the Keras model it was exported from.")
flags.DEFINE_string("input", None, "File of texts to compare labels on.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_integer("repeats", 50, "Timed runs for each figure.", 1)
flags.DEFINE_string("output_dir", None, "Folder to write benchmark.json into.")
flags.mark_flags_as_required(["model", "output_dir"])


def main():
    from distill.device.benchmark import agreement, benchmark_file, print_benchmark
    from tfnlp.checkpoints import load_model
    from tfnlp.errors import InputError
    from tfnlp.files import check_writable, write_json
    from tfnlp.text import read_examples

    if bool(FLAGS.model_dir) != bool(FLAGS.input):
        raise InputError("Agreement needs both --model_dir and --input.")
    output = f"{FLAGS.output_dir}/benchmark.json"
    check_writable(output)
    if FLAGS.input:
        examples = read_examples(FLAGS.input, FLAGS.text_column, label_column=None)
        model = load_model(FLAGS.model_dir, "classifier")
    figures = benchmark_file(FLAGS.model, repeats=FLAGS.repeats)
    if FLAGS.input:
        figures["agreement"] = agreement(FLAGS.model, model, examples.texts)
    print_benchmark(figures)
    write_json(output, figures)


if __name__ == "__main__":
    common.run(main)
