"""Finds texts that mean what a query says, in an index on disk.

    python -m recipes.similar_texts --model=runs/export/model.tflite --texts=notes.txt \\
        --index_dir=runs/notes
    python -m recipes.similar_texts --model=runs/export/model.tflite --index_dir=runs/notes \\
        --query="where did I park the car"

--texts are files, of a table or with a text on each line, or a folder of .txt and .md files, each
a text. The model is an exported file of vectors, or a folder of sentence-transformers; the index
of one is searched with the other too. Its vectors are for usearch, which has bindings for Kotlin
and Swift.
"""

import pathlib

from absl import flags, logging

from distill import runtime
from recipes.flags import dataclass_flags
from recipes.shell import entry_point
from recipes.shell.command_line import check_output, refuse_without
from recipes.shell.input_checks import names_file
from tfnlp import pipelines, text
from tfnlp.pipelines.pipeline import Embedder
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_absent, check_folder, write_json_lines

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "A .tflite file of vectors, or the folder of a model.")
flags.DEFINE_string("index_dir", None, "Folder of the index.")
flags.DEFINE_list(
    "texts", None, "Files of texts, or folders of .txt and .md files, to write the index of."
)
flags.DEFINE_string("text_column", "text", "Column of the texts, in tables.")
dataclass_flags.define(runtime.IndexSettings)
flags.DEFINE_bool("overwrite", False, "Write over the index that is there.")
flags.DEFINE_multi_string("query", [], "A text to search for.")
flags.DEFINE_integer("count", 10, "Texts to find for each query.", 1)
flags.DEFINE_string("output", None, "File to write the hits to, a .jsonl, as `rerank` reads it.")
flags.mark_flags_as_required(["model", "index_dir"])


def main():
    folder = pathlib.Path(FLAGS.index_dir)
    refuse_without(["precision", "dims", "text_column", "overwrite"], "texts")
    refuse_without(["count", "output"], "query")
    if FLAGS.output:
        check_output("output", ".jsonl")
    if not (FLAGS.texts or FLAGS.query):
        raise InputError("Give `texts` to index, `query` to search for, or both.")
    if FLAGS.texts:
        check_folder(folder)
        if not FLAGS.overwrite:
            files = folder / "texts.jsonl", *folder.glob("index.*")
            check_absent(*files, advice="give `overwrite` to replace it, or another folder")
    texts = text.read_located_texts(FLAGS.texts or (), FLAGS.text_column)
    embedder = load_embedder()
    if FLAGS.texts:
        settings = dataclass_flags.read(runtime.IndexSettings)
        vectors = runtime.write_index(folder, texts, embedder, settings)
    index = runtime.TextIndex(folder, embedder)
    if FLAGS.texts:
        logging.info(
            "Wrote %d texts, vectors of %.2f MB; it finds %.1f %% of the 10 nearest texts.",
            len(texts),
            index.megabytes,
            100 * runtime.recall(index, vectors),
        )
    answers = [(query, index.search(query, FLAGS.count)) for query in FLAGS.query]
    if FLAGS.output:
        rows = [{"query": query} | vars(hit) for query, hits in answers for hit in hits]
        write_json_lines(FLAGS.output, rows)
        return logging.info("%d hits are in %s.", len(rows), FLAGS.output)
    for query, hits in answers:
        print(query)
        for hit in hits:
            print(f"  {hit.score:.4f}  {hit.source}  {' '.join(hit.text.split())[:200]}")


def load_embedder():
    """Return the pipeline of vectors of --model."""
    if names_file():
        runner = runtime.load_runner(FLAGS.model)
    else:
        entry_point.load_tensorflow()
        runner = pipelines.load_runner(FLAGS.model)
    if not isinstance(runner, Embedder):
        raise InputError(f"model={FLAGS.model} makes no vectors; give one of finetune_embedder.")
    return runner


if __name__ == "__main__":
    entry_point.run(main)
