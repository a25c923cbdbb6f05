"""Measures an exported .tflite file: size, latency, peak memory, agreement with Keras.

    python -m recipes.benchmark_tflite --model=runs/export/model.tflite \\
        --model_dir=runs/student/best --input=dev.tsv --output_dir=runs/benchmark

Latency is the median of --repeats runs at 16, 32, 64 and 128 tokens (up to the file's longest
input), with 1 and 2 threads, and for texts of varying length; the time to open the file and the
first call, which prepares the graph, are measured too. Peak memory is that of a process that only
runs the file. On --input, in the format of the task's recipe, the file is compared with the Keras
model of --model_dir: by the share of equal labels, tags, answers or choices, or the correlation of
numbers.
"""

from absl import flags

from distill import export, reports, runtime
from recipes.flags import data_flags
from recipes.shell import entry_point
from tfnlp import pipelines
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "The .tflite file.")
flags.DEFINE_string("model_dir", None, "Folder of the Keras model it was exported from.")
flags.DEFINE_string("input", None, "File of texts to compare with --model_dir on.")
data_flags.define_column_flags()
flags.DEFINE_integer("repeats", 50, "Timed runs for each figure.", 1)
flags.DEFINE_string("output_dir", None, "Folder to write benchmark.json into.")
flags.mark_flags_as_required(["model", "output_dir"])


def check_flags():
    """Raise an InputError for conflicting flags."""
    if bool(FLAGS.input) != bool(FLAGS.model_dir):
        raise InputError("Agreement needs both --model_dir and --input.")


def main():
    check_flags()
    output = f"{FLAGS.output_dir}/benchmark.json"
    entry_point.load_tensorflow()
    if FLAGS.input:
        columns = FLAGS.text_column, FLAGS.pair_column
        inputs = data_flags.read_inputs(FLAGS.input, FLAGS.model_dir, *columns)
        model = pipelines.load_runner(FLAGS.model_dir)
    figures = reports.benchmark_file(FLAGS.model, repeats=FLAGS.repeats)
    sentence = None
    if FLAGS.input:
        runner = runtime.load_runner(FLAGS.model, num_threads=2)
        model.max_length = runner.max_length
        figures["check"] = export.compare(runner, model, inputs)
        sentence = export.describe(model.kind, figures["check"])
    reports.print_benchmark(figures, sentence)
    write_json(output, figures)


if __name__ == "__main__":
    entry_point.run(main)
