"""Prepares a corpus for pretraining: tokenised shards of text files that may exceed memory.

    python -m recipes.prepare_corpus --input='wiki/*.txt.gz,books.txt' --tokenizer_dir=MODEL \\
        --output_dir=corpus --processes=8
    python -m recipes.prepare_corpus --input=reviews.txt --documents=lines ...

OUTPUT_DIR holds the ids of all documents as NumPy arrays, their numbers of tokens and of
sentences, and manifest.json with counts: documents, sentences, tokens, unknown tokens, duplicates,
documents without text. A shard is made from a range of the files alone, and written whole: a
preparation that was stopped goes on with the same command, and the files are the same, byte for
byte, then, with any number of processes, and in an Apache Beam pipeline (--runner), whose workers
see the same folders. Plain texts, .tsv and .jsonl are cut into ranges; any other file is read by
one process.
"""

import os

from absl import flags, logging

from recipes.flags import dataclass_flags, runner_flags
from recipes.shell import entry_point
from recipes.shell.command_line import refuse_beside
from tfnlp import corpora, text
from tfnlp.utils.formatting import counted

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "input",
    None,
    "Text files, or quoted patterns of files: .tsv, .csv, .json, .jsonl or .parquet with a "
    "document in each row, or plain text; or with .gz.",
)
flags.DEFINE_string(
    "tokenizer_dir",
    None,
    "Folder of a tokenizer, or of a model with one, or its name on Hugging Face's Hub.",
)
flags.DEFINE_string("output_dir", None, "Folder to write the corpus into.")
dataclass_flags.define(corpora.CorpusSettings)
flags.DEFINE_integer("processes", None, "Processes; one for each core if not given.", 1)
runner_flags.define()
flags.mark_flags_as_required(["input", "tokenizer_dir", "output_dir"])


def main():
    if FLAGS.runner:
        refuse_beside(["processes"], f"runner={FLAGS.runner}, whose options say its workers")
    counts = corpora.prepare_corpus(
        FLAGS.input,
        text.load_tokenizer(FLAGS.tokenizer_dir),
        FLAGS.output_dir,
        dataclass_flags.read(corpora.CorpusSettings),
        processes=FLAGS.processes or os.cpu_count(),
        map_shards=runner_flags.map_shards(),
    )["counts"]
    documents, sentences, tokens, duplicates = (
        counted(counts[f"{name}s"], name)
        for name in ("document", "sentence", "token", "duplicate")
    )
    unknown, empty = counts["unknown"] / counts["tokens"], counted(counts["empty"], "document")
    held = f"{documents} of {sentences} and {tokens}, {100 * unknown:.3f} % of them unknown"
    left_out = f"{duplicates}, {empty} without text"
    logging.info("%s holds %s; left out: %s.", FLAGS.output_dir, held, left_out)
    corpora.warn_of_unknown(unknown)


if __name__ == "__main__":
    entry_point.run(main)
