"""Memory and speed of tokenizing a large file, from the file to an epoch of batches.

    python -m benchmarks.tokenizing_memory --model_dir=MINILM

Writes a .tsv of --lines texts with labels, 20 words each, reads it, and makes batches of it with
the calls that every recipe makes. Prints the peak memory of the whole process, the texts included;
in a recipe TensorFlow's own comes to that.
"""

import pathlib
import resource
import sys
import tempfile
import time

from absl import flags

from recipes import entry_point, model_flags

FLAGS = flags.FLAGS
flags.DEFINE_integer("lines", 1_000_000, "Texts in the file.", 1)
flags.DEFINE_integer("words", 20, "Words of a text.", 1)
flags.DEFINE_integer("max_length", 128, "Longest input in tokens; the rest is cut.", 3)
model_flags.define_model_flag()


def write_texts(path, pieces):
    """Write labelled texts of a vocabulary's words, whose frequencies follow Zipf's law."""
    import numpy as np

    rng = np.random.default_rng(0)
    words = rng.permutation([piece for piece in pieces if piece.isalpha()])
    with open(path, "w", encoding="utf-8") as file:
        file.write("sentence\tlabel\n")
        for _ in range(FLAGS.lines):
            picks = rng.zipf(1.3, FLAGS.words) % len(words)
            file.write(f"{' '.join(words[picks])}\t{picks[0] % 2}\n")


def main():
    from tfnlp.text import LengthBatches, load_tokenizer, read_examples

    tokenizer = load_tokenizer(FLAGS.model_dir)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "texts.tsv"
        write_texts(path, tokenizer.vocabulary)
        print(f"{path.stat().st_size / 1e6:,.0f} MB of text; peak {peak_memory():,.0f} MB")
        examples = read_examples(path)
    print(f"read: peak {peak_memory():,.0f} MB")
    start = time.perf_counter()
    encodings = tokenizer.encode(examples.texts, max_length=FLAGS.max_length)
    seconds = time.perf_counter() - start
    print(f"tokenized: peak {peak_memory():,.0f} MB, {len(examples) / seconds:,.0f} texts/s")
    batches = LengthBatches(encodings, 32, examples.labels, shuffle=True)
    tokens = sum(x["padding_mask"].sum() for x, _ in batches.epoch())
    print(f"an epoch of {tokens:,} tokens: peak {peak_memory():,.0f} MB")


def peak_memory():
    """Return this process's peak memory in MB."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    entry_point.run(main)
