"""Measures an exported .tflite file: size, latency, peak memory, agreement with Keras.

    python -m recipes.benchmark_tflite --model=runs/export/model.tflite \\
        --model_dir=runs/student/best --input=dev.tsv --output_dir=runs/benchmark

Latency is the median of --repeats runs at 16, 32, 64 and 128 tokens, of these as many as the file
does not cut, with 1 and 2 threads, and of texts whose lengths change from call to call; the time
to open the file and the first call, which prepares the graph, are measured too. Peak memory is
that of a process that only runs the file. Agreement is the share of the texts of --input to which
the file and the Keras model of --model_dir give the same label. --operators says which operators
take the time, --onnx what ONNX Runtime takes with int8 of the same weights (needs
tfnlp[benchmarks]).
"""

from absl import flags

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "The .tflite file.")
flags.DEFINE_string("model_dir", None, "Folder of the Keras model it was exported from.")
flags.DEFINE_string("input", None, "File of texts to compare labels on.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_integer("repeats", 50, "Timed runs for each figure.", 1)
flags.DEFINE_bool("operators", False, "Also profile the file's operators, at 32 tokens.")
flags.DEFINE_bool("onnx", False, "Also time the classifier of --model_dir in ONNX Runtime.")
flags.DEFINE_string("output_dir", None, "Folder to write benchmark.json into.")
flags.mark_flags_as_required(["model", "output_dir"])


def main():
    from distill.device.benchmark import agreement, benchmark_file, print_benchmark
    from distill.device.onnx import benchmark_onnx
    from distill.device.operators import print_operators, profile_operators
    from tfnlp.checkpoints import load_model
    from tfnlp.errors import InputError
    from tfnlp.files import check_writable, write_json
    from tfnlp.text import read_examples

    if FLAGS.input and not FLAGS.model_dir:
        raise InputError("Agreement needs both --model_dir and --input.")
    if FLAGS.model_dir and not (FLAGS.input or FLAGS.onnx):
        raise InputError("Agreement needs both --model_dir and --input, and --onnx a --model_dir.")
    if FLAGS.onnx and not FLAGS.model_dir:
        raise InputError("--onnx needs the --model_dir whose weights it is to run.")
    output = f"{FLAGS.output_dir}/benchmark.json"
    check_writable(output)
    if FLAGS.input:
        examples = read_examples(FLAGS.input, FLAGS.text_column, label_column=None)
        model = load_model(FLAGS.model_dir, "classifier")
    figures = benchmark_file(FLAGS.model, repeats=FLAGS.repeats)
    if FLAGS.input:
        figures["agreement"] = agreement(FLAGS.model, model, examples.texts)
    if FLAGS.onnx:
        figures["onnx"] = benchmark_onnx(FLAGS.model_dir, repeats=FLAGS.repeats)
    print_benchmark(figures)
    if FLAGS.operators:
        figures["operators"] = profile_operators(FLAGS.model)
        print_operators(figures["operators"])
    write_json(output, figures)


if __name__ == "__main__":
    common.run(main)
