"""Ranks the first hits of a search anew, by a model of pairs or by vectors of tokens.

    python -m recipes.rerank --model=runs/pairs/best --input=hits.tsv --output=ranked.jsonl
    python -m recipes.rerank --model=runs/export/model.tflite --input=hits.tsv \\
        --relevance_column=relevant --output=ranked.jsonl

Each line of --input has a query and a hit, the first hit first. --model is the folder or file of a
classifier or a regression of pairs, a cross-encoder (finetune_classifier --pair_column), or of an
embedder, whose tokens are compared (late interaction; its file needs --token_vectors). The lines
of --output, with all columns, are sorted anew for each query, with the score of the first --first
hits, which alone move. The time of a query is printed, and with --relevance_column nDCG@10 before
and after.
"""

import statistics
import time

from absl import flags

from distill import runtime
from recipes.shell import entry_point
from recipes.shell.command_line import check_output, refuse_beside
from recipes.shell.input_checks import names_file
from tfnlp import pipelines
from tfnlp.tasks.retrieval import ndcg_10
from tfnlp.text.reading.readers import as_finite_number, read_columns, read_rows
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json_lines

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "A .tflite file, or the folder of a model (best/ of a run).")
flags.DEFINE_string("input", None, "File of queries and their hits, a line for each hit.")
flags.DEFINE_string("query_column", "query", "Column of the query.")
flags.DEFINE_string("text_column", "text", "Column of the hit.")
flags.DEFINE_string("relevance_column", None, "Column of how relevant the hit is, 0 or more.")
flags.DEFINE_integer("first", 20, "Hits of a query to rank anew; the others stay behind.", 1)
flags.DEFINE_string("positive_label", None, "Label of a pair that fits; of 2 the second.")
flags.DEFINE_integer("num_threads", 1, "Threads of LiteRT, for a .tflite file.", 1)
flags.DEFINE_string("output", None, "File to write, a .jsonl.")
flags.mark_flags_as_required(["model", "input", "output"])


def main():
    check_output("output", ".jsonl")
    hits = read_hits()
    texts = [text for group in hits.values() for _, text, _ in group[: FLAGS.first]]
    score = pipelines.reranker(load_runner(), texts, FLAGS.positive_label)
    lines, before, after, seconds = [], [], [], []
    for query, group in hits.items():
        rows, texts, relevances = zip(*group, strict=True)
        start = time.perf_counter()
        scores = score(query, texts[: FLAGS.first])
        seconds.append(time.perf_counter() - start)
        order = pipelines.rerank(scores, len(texts))
        known = dict(enumerate(map(float, scores)))
        lines += [rows[i] | {"score": known.get(i)} for i in order]
        before.append(ndcg_10(relevances))
        after.append(ndcg_10([relevances[i] for i in order]))
    write_json_lines(FLAGS.output, lines)
    if FLAGS.relevance_column:
        means = (sum(x) / len(x) for x in (before, after))
        print("nDCG@10 {:.4f} before, {:.4f} after".format(*means))
    # The first queries of a folder have its graphs traced.
    print(f"{1000 * statistics.median(seconds):.1f} ms a query (median)")


def load_runner():
    if names_file():
        return runtime.load_runner(FLAGS.model, FLAGS.num_threads)
    refuse_beside(["num_threads"], f"model={FLAGS.model}, which is no .tflite file")
    entry_point.load_tensorflow()
    return pipelines.load_runner(FLAGS.model, tokens=True)


def read_hits():
    """Return {query: [(row, text, relevance), ...]} of --input, in its order."""
    columns, hits = [FLAGS.query_column, FLAGS.text_column], {}
    relevance = FLAGS.relevance_column
    read = read_columns(FLAGS.input, [*columns, *filter(None, [relevance])])
    for (place, row), all_columns in zip(read, read_rows(FLAGS.input), strict=True):
        query, text = (row[column] for column in columns)
        of_hit = 0.0
        if relevance:
            of_hit = as_finite_number(row[relevance], f"{FLAGS.input}, {place}: {relevance}")
            if of_hit < 0:
                raise InputError(
                    f"{FLAGS.input}, {place}: {relevance}={row[relevance]} must be at least 0."
                )
        hits.setdefault(query, []).append((all_columns, text, of_hit))
    return hits


if __name__ == "__main__":
    entry_point.run(main)
