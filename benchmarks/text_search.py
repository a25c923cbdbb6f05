"""Sizes, recall and time of an index of texts, for each precision of its vectors.

    python -m benchmarks.text_search --model=runs/export/model.tflite --texts=texts.tsv

A tenth of the texts are queries, the others are indexed. The exact nearest texts are those of the
float32 vectors. On one thread. Needs `.[search]`.
"""

import tempfile
import time
import types

import numpy as np
from absl import app, flags

from distill import runtime
from tfnlp import text

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "A .tflite file of vectors.", required=True)
flags.DEFINE_list("texts", None, "Files of texts.", required=True)
flags.DEFINE_string("text_column", "sentence", "Column of the texts, in tables.")
flags.DEFINE_integer("dims", None, "First dimensions of the vectors.")


def main(_):
    rows = text.read_located_texts(FLAGS.texts, FLAGS.text_column)
    embedder = runtime.TextEmbedder(FLAGS.model)
    asked, kept = rows[::10], [row for i, row in enumerate(rows) if i % 10]
    queries = embedder.embed([text for text, _ in asked], prompt=embedder.query_prompt)
    queries = queries[:, : FLAGS.dims]
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    print(f"{len(kept)} texts, {len(queries)} queries, {queries.shape[1]} dimensions")
    print("| vectors | MB | recall of 1 | recall of 10 | ms a query |")
    print("| --- | --- | --- | --- | --- |")
    for precision in ("float32", "int8", "bits"):
        with tempfile.TemporaryDirectory() as folder:
            settings = runtime.IndexSettings(precision, FLAGS.dims)
            vectors = runtime.write_index(folder, kept, embedder, settings)
            index = runtime.TextIndex(folder, embedder)
            start = time.perf_counter()
            for query in queries:
                index.nearest(query)
            ms = 1000 * (time.perf_counter() - start) / len(queries)
            recalls = (runtime.recall(index, vectors, queries, count) for count in (1, 10))
            shares = " | ".join(f"{100 * share:.1f} %" for share in recalls)
            print(f"| {precision} | {index.megabytes:.2f} | {shares} | {ms:.3f} |")
            del index
    print_own_rounding(vectors, queries)


def print_own_rounding(vectors, queries):
    """Print the recall of an index that rounds float vectors to int8 itself."""
    from usearch.index import Index

    graph = Index(ndim=vectors.shape[1], metric="cos", dtype="i8")
    graph.add(np.arange(len(vectors)), vectors, threads=1)
    index = types.SimpleNamespace(nearest=lambda x, count: [graph.search(x, count).keys])
    shares = (runtime.recall(index, vectors, queries, count) for count in (1, 10))
    print("| int8 by usearch | | " + " | ".join(f"{100 * x:.1f} %" for x in shares) + " | |")


if __name__ == "__main__":
    app.run(main)
