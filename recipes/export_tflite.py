"""Exports a fine-tuned or distilled model as a .tflite file for phones.

    python -m recipes.export_tflite --model_dir=runs/student/best --output_dir=runs/export

writes OUTPUT_DIR/model.tflite: inputs ids, mask and segment_ids of any length, with the
tokenizer, the labels and the settings inside. recipes.predict runs it, and distill.runtime: a
classifier as TextClassifier (with WordPiece, MediaPipe does too), a tagger as TokenTagger, an
answerer as QuestionAnswerer, a regression as SentenceScorer, a chooser as EndingChooser.
"""

import pathlib

from absl import flags, logging

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of the model, or its name on the Hub.")
flags.DEFINE_string("output_dir", None, "Folder to write model.tflite into.")
flags.DEFINE_enum(
    "quantization",
    "int8",
    ["float32", "float16", "int8"],
    "Weights as they are, in 16 bits, or in 8 bits with activations quantised as they come.",
)
flags.DEFINE_integer(
    "max_length", None, "Longest input in tokens; the training's, or 128, if not given.", 3
)
flags.DEFINE_string("name", "text model", "Name of the model in the metadata.")
flags.mark_flags_as_required(["model_dir", "output_dir"])


def main():
    from distill.device.tflite import export_tflite
    from tfnlp.checkpoints import load_model, read_head, read_labels, read_task_settings
    from tfnlp.files import check_writable
    from tfnlp.text import load_tokenizer

    path = pathlib.Path(FLAGS.output_dir) / "model.tflite"
    check_writable(path)
    settings = read_task_settings(FLAGS.model_dir)
    tokenizer = load_tokenizer(FLAGS.model_dir)
    model = load_model(FLAGS.model_dir, read_head(FLAGS.model_dir))
    export_tflite(
        model,
        path,
        tokenizer,
        read_labels(FLAGS.model_dir),
        FLAGS.quantization,
        FLAGS.max_length or settings.get("max_length", 128),
        FLAGS.name,
        settings,
    )
    logging.info("Wrote %s, %.2f MB.", path, path.stat().st_size / 1e6)


if __name__ == "__main__":
    common.run(main)
