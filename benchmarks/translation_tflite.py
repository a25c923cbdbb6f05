"""Quality and cost of exported translators: BLEU, agreement with Keras, size, first-token time.

    python -m recipes.export_tflite --model_dir=runs/student/averaged --output_dir=runs/int8
    python -m benchmarks.translation_tflite --model_dir=runs/student/averaged \\
        --files=runs/int8/model.tflite --input=test.tsv --source_column=en --target_column=de \\
        --output_dir=runs/translation_tflite

The Keras model of --model_dir, and each file on one thread, translate --input with the file's
beams. Tokens are compared under teacher forcing, where both have read the same reference prefix,
up to the file's longest output. The first-token time covers the encoding of the source and one
decoder step. It is the median over texts, measured after each length has been run once.
"""

import pathlib

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of the translator that the files were made of.")
flags.DEFINE_list("files", None, "Its .tflite files.")
flags.DEFINE_list("input", None, "Texts with their translations, as train_translator's --test.")
flags.DEFINE_string("source_column", "source", "Column of the texts, where there are columns.")
flags.DEFINE_string("target_column", "target", "Column of their translations, likewise.")
flags.DEFINE_string("output_dir", None, "Folder for the translations and translation_tflite.json.")
flags.mark_flags_as_required(["model_dir", "files", "input", "output_dir"])


def main():
    entry_point.load_tensorflow()
    from benchmarks.forced_tokens import forced, measured
    from distill.runtime import Translator
    from tfnlp import generation
    from tfnlp.checkpoints import load_model
    from tfnlp.generation.output_files import score_translations
    from tfnlp.tasks import read_parallel_texts
    from tfnlp.text import load_tokenizer
    from tfnlp.utils.files import check_writable, make_folder, write_json

    folder = pathlib.Path(FLAGS.output_dir)
    check_writable(folder / "translation_tflite.json")
    make_folder(folder)
    texts = read_parallel_texts(FLAGS.input, FLAGS.source_column, FLAGS.target_column)
    files = [Translator(path) for path in FLAGS.files]
    model = load_model(FLAGS.model_dir, "sequence_to_sequence")
    tokenizer = load_tokenizer(FLAGS.model_dir)
    examples = forced(model, tokenizer, texts)
    figures = {}
    for number, file in enumerate(files):
        path = pathlib.Path(file.path)
        scores = score_translations(file, texts, folder / f"file_{number}.tsv")
        same, first_ms = measured(file, examples)
        figures[str(path)] = scores | {
            "megabytes": path.stat().st_size / 1e6,
            "same_tokens": same,
            "first_token_ms": first_ms,
        }
        print(
            f"{path}: {path.stat().st_size / 1e6:.2f} MB, BLEU {scores['bleu']:.2f}, first token "
            f"{first_ms:.2f} ms, {same:.2%} of the tokens are those of Keras"
        )
    keras = generation.Translator(
        model, tokenizer, search=files[0].settings.strategy, max_new_tokens=files[0].settings.steps
    )
    figures["keras"] = score_translations(keras, texts, folder / "keras.tsv")
    print(f"Keras: BLEU {figures['keras']['bleu']:.2f}")
    write_json(folder / "translation_tflite.json", figures)


if __name__ == "__main__":
    entry_point.run(main)
