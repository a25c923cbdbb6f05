"""Agreement of exported files with Keras on the labels of random and hostile strings.

    python -m benchmarks.hostile_strings --model_dir=runs/student/best --output_dir=runs/hostile

10,000 strings, random and hostile: control characters, lone surrogates, right-to-left marks, emoji
sequences, combining marks without end, white space of all kinds, nothing, and a few of 100,000
characters. For each kind of file the share of strings with the label of the Keras model.
"""

import pathlib

from absl import flags

from benchmarks.hostile_texts import agreements, hostile_strings
from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of a classifier.")
flags.DEFINE_string("output_dir", None, "Folder for the files and hostile.json.")
flags.DEFINE_integer("count", 10_000, "Strings.", 1)
flags.DEFINE_integer("seed", 0, "Of what is drawn.", 0)
flags.DEFINE_list("quantizations", ["float32", "float16", "int8"], "Kinds of files to try.")
flags.DEFINE_integer("max_length", 128, "Longest input in tokens.", 3)
flags.mark_flags_as_required(["model_dir", "output_dir"])


def main():
    entry_point.load_tensorflow()
    from tfnlp.checkpoints import load_model, read_labels
    from tfnlp.text import load_tokenizer
    from tfnlp.utils.files import write_json

    folder = pathlib.Path(FLAGS.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    model = load_model(FLAGS.model_dir, "classifier")
    texts = hostile_strings(FLAGS.count, FLAGS.seed)
    shares = agreements(
        model,
        load_tokenizer(FLAGS.model_dir),
        read_labels(FLAGS.model_dir),
        folder,
        texts,
        FLAGS.quantizations,
        FLAGS.max_length,
    )
    for name, share in shares.items():
        print(f"{name}: the label of Keras on {share:.2%} of {len(texts)} strings")
    write_json(folder / "hostile.json", {"strings": len(texts), "agreement": shares})


if __name__ == "__main__":
    entry_point.run(main)
