"""Static vectors beside their teacher's and model2vec's: scores, cosines, and time of a text.

    python -m recipes.make_static_vectors --teacher_dir=all-MiniLM-L6-v2 --dims=240 \\
        --output_dir=runs/static
    python -m benchmarks.static_vectors --model_dir=runs/static --teacher_dir=all-MiniLM-L6-v2 \\
        --pairs=pairs.tsv --questions=questions.json

On pairs with --score_column, Spearman's correlation of the cosines with the scores; without, of
the static vectors' with the teacher's. On questions (SQuAD 1.1), the search of each one's
paragraph among all. Each text by itself, on one thread. Needs `.[parity]`.
"""

import functools
import os
import pathlib
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
from absl import app, flags

from benchmarks.turns import medians
from distill import export, runtime
from tfnlp import checkpoints, pipelines, tasks, text
from tfnlp.tasks.regression import correlations
from tfnlp.tasks.retrieval import bm25_scores, retrieval_scores

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of static vectors.", required=True)
flags.DEFINE_string("teacher_dir", None, "Folder of their teacher.", required=True)
flags.DEFINE_string("prompt", "", "Beginning of the teacher's texts, such as 'query: ' of E5.")
flags.DEFINE_string("pairs", None, "Table of pairs of texts.")
flags.DEFINE_list("text_columns", ["sentence1", "sentence2"], "Columns of the texts.")
flags.DEFINE_string("score_column", None, "Column of how alike they are.")
flags.DEFINE_string("questions", None, "Questions and paragraphs, SQuAD 1.1.")


def main(_):
    import model2vec
    import sentence_transformers

    static, teacher = map(pipelines.load_runner, (FLAGS.model_dir, FLAGS.teacher_dir))
    with tempfile.TemporaryDirectory() as folder:
        file = export_file(pathlib.Path(folder, "static.tflite"))
        print(f"int8 file: {file.backend.path.stat().st_size / 1e6:.2f} MB")
        embedders = {"teacher": teacher, "static": static, "int8 file": file}
        examples = []
        if FLAGS.pairs:
            examples = print_pairs(embedders)
        if FLAGS.questions:
            examples = print_search(embedders) or examples
        peers = {
            "sentence-transformers": sentence_transformers.SentenceTransformer(FLAGS.model_dir),
            "model2vec": model2vec.StaticModel.from_pretrained(FLAGS.model_dir),
        }
        print_peers(peers, static, file, examples[:1000])


def export_file(path):
    """Return the runner of an int8 file of --model_dir."""
    model = checkpoints.load_model(FLAGS.model_dir, "embedder")
    export.export_tflite(model, path, text.load_tokenizer(FLAGS.model_dir))
    return runtime.TextEmbedder(path)


def embed(name, embedder, texts):
    """Return the vectors of texts, which begin with --prompt for the teacher."""
    return embedder.embed([FLAGS.prompt * (name == "teacher") + text for text in texts])


def print_pairs(embedders):
    """Print the correlations of cosines, and return the first texts."""
    groups = tasks.read_text_groups(FLAGS.pairs, FLAGS.text_columns, FLAGS.score_column)
    first, second = zip(*groups.texts, strict=True)
    cosines = {
        name: (embed(name, embedder, first) * embed(name, embedder, second)).sum(1)
        for name, embedder in embedders.items()
    }
    expected = groups.scores if FLAGS.score_column else cosines["teacher"]
    for name, values in cosines.items():
        print(f"{name}: Spearman {100 * correlations(values, expected)['spearman']:.2f}")
    return first


def print_search(embedders):
    """Print the scores of a search, and return the questions."""
    examples = tasks.read_questions(FLAGS.questions)
    contexts = [*dict.fromkeys(examples.contexts)]
    places = [contexts.index(context) for context in examples.contexts]
    for name, embedder in embedders.items():
        queries, vectors = (embed(name, embedder, x) for x in (examples.questions, contexts))
        scores = retrieval_scores((queries @ vectors.T)[:, places], examples.contexts)
        print(f"{name}: nDCG@10 {scores['ndcg_10']:.4f}")
    scores = bm25_scores(examples.questions, contexts)[:, places]
    print(f"BM25: nDCG@10 {retrieval_scores(scores, examples.contexts)['ndcg_10']:.4f}")
    return examples.questions


def print_peers(peers, static, file, texts):
    """Print the least cosine with each peer, and microseconds of a text."""
    vectors = static.embed(texts)
    for name, peer in peers.items():
        theirs = np.asarray(peer.encode(list(texts)))
        norms = np.maximum(np.linalg.norm(theirs, axis=1), 1e-12)
        print(f"{name}: least cosine {((vectors * theirs).sum(1) / norms).min():.6f}")
    calls = {"int8 file": file.embed} | {name: peer.encode for name, peer in peers.items()}
    for count in (8, 32, 128):
        one = [" ".join((" ".join(texts)).split()[:count])]
        timed = {name: functools.partial(call, one) for name, call in calls.items()}
        times = medians(timed, 201)
        shown = ", ".join(f"{name} {1000 * x:.0f}" for name, x in times.items())
        print(f"{count} words, microseconds: {shown}")


if __name__ == "__main__":
    app.run(main)
