"""nDCG@10 that rerankers add to BM25 and to a search by vectors, and the time that they take.

    python -m benchmarks.rerankers --model_dir=all-MiniLM-L6-v2 --train=xquad_en/train.json \\
        --dev=xquad_en/dev.json --output_dir=runs/rerankers

The questions of --dev (SQuAD's format) look for their paragraphs among those of both files. The
cross-encoder is --model_dir, fine-tuned on the first --questions of --train: whether a paragraph
is the question's own or the best other one by BM25. Late interaction compares the tokens of
--model_dir as it is; the paragraphs' vectors are computed beforehand. Both run as int8 files, on
one thread, and are kept in --output_dir. Needs `.[search]`.
"""

import pathlib
import subprocess
import sys
import time

import numpy as np
from absl import app, flags

from distill import runtime
from tfnlp import pipelines, tasks
from tfnlp.tasks.retrieval import bm25_scores, ndcg_10
from tfnlp.utils.files import write_text

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of sentence-transformers.", required=True)
flags.DEFINE_string("train", None, "Questions to train the cross-encoder on.", required=True)
flags.DEFINE_string("dev", None, "Questions to search with.", required=True)
flags.DEFINE_string("output_dir", None, "Folder of the models.", required=True)
flags.DEFINE_integer("questions", 300, "Questions of --train to train on.", 1)
flags.DEFINE_integer("first", 10, "Hits to rank anew.", 1)
flags.DEFINE_integer("max_length", 192, "Tokens of a pair, or of a text.", 3)
flags.DEFINE_integer("epochs", 2, "Epochs of the cross-encoder.", 1)


def main(_):
    train, dev = (tasks.read_questions(path) for path in (FLAGS.train, FLAGS.dev))
    corpus = [*dict.fromkeys([*dev.contexts, *train.contexts])]
    folder = pathlib.Path(FLAGS.output_dir)
    train_cross_encoder(train, corpus, folder)
    export(FLAGS.model_dir, folder / "tokens", "--token_vectors")
    pairs = runtime.load_runner(folder / "pairs_file/model.tflite")
    tokens = runtime.TokenEmbedder(folder / "tokens/model.tflite")
    rerankers = {
        "cross-encoder": pipelines.reranker(pairs, corpus, "1"),
        "late interaction": pipelines.reranker(tokens, corpus),
    }
    vectors = tokens.embed(dev.questions) @ tokens.embed(corpus).T
    searches = {"BM25": bm25_scores(dev.questions, corpus), "vectors": vectors}
    print("| search | nDCG@10 | " + " | ".join(f"{x} | ms" for x in rerankers) + " |")
    print("| --- " * (2 + 2 * len(rerankers)) + "|")
    for name, scores in searches.items():
        search = first_hits(dev, corpus, scores)
        cells = [f"{np.mean([ndcg_10(relevances) for *_, relevances in search]):.3f}"]
        for score in rerankers.values():
            after, milliseconds = reranked(search, score)
            cells += [f"{after:.3f}", f"{milliseconds:.1f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def first_hits(questions, corpus, scores):
    """Return (question, texts, relevances) of the first 20 texts by scores (queries, texts)."""
    places = np.argsort(-scores, axis=1, kind="stable")[:, :20]
    hits = ([corpus[i] for i in row] for row in places)
    rows = zip(questions.questions, hits, questions.contexts, strict=True)
    return [(question, row, [float(x == right) for x in row]) for question, row, right in rows]


def reranked(search, score):
    """Return the nDCG@10 of hits that a function ranks anew, and its ms a query."""
    values, start = [], time.perf_counter()
    for query, hits, relevances in search:
        order = pipelines.rerank(score(query, hits[: FLAGS.first]), len(hits))
        values.append(ndcg_10([relevances[i] for i in order]))
    return np.mean(values), 1000 * (time.perf_counter() - start) / len(search)


def train_cross_encoder(questions, corpus, folder):
    """Fine-tune on the questions' own paragraphs and the best others by BM25, and export."""
    if (folder / "pairs_file/model.tflite").exists():
        return
    few, lines = FLAGS.questions, []
    scores = bm25_scores(questions.questions[:few], corpus)
    for question, right, row in zip(questions.questions, questions.contexts, scores, strict=False):
        best = [corpus[i] for i in np.argsort(-row)[:2]]
        (wrong, *_) = [text for text in best if text != right]
        for text, label in ((right, 1), (wrong, 0)):
            pair = (" ".join(x.split()) for x in (question, text))
            lines.append("\t".join([*pair, str(label)]))
    dev = len(lines) // 20 * 2  # a tenth, of questions at the end
    for name, part in (("train", lines[:-dev]), ("dev", lines[-dev:])):
        write_text(folder / f"{name}.tsv", "\n".join(["query\ttext\tlabel", *part]) + "\n")
    recipe(
        "finetune_classifier",
        f"--model_dir={FLAGS.model_dir}",
        *[f"--{name}={folder}/{name}.tsv" for name in ("train", "dev")],
        *("--text_column=query", "--pair_column=text", f"--max_length={FLAGS.max_length}"),
        *(f"--epochs={FLAGS.epochs}", f"--output_dir={folder / 'pairs'}"),
    )
    export(folder / "pairs/best", folder / "pairs_file", "--check_text=")


def export(model, folder, *more):
    if not (folder / "model.tflite").exists():
        places = f"--model_dir={model}", f"--output_dir={folder}"
        recipe("export_tflite", *places, f"--max_length={FLAGS.max_length}", *more)


def recipe(name, *arguments):
    subprocess.run([sys.executable, "-m", f"recipes.{name}", *arguments], check=True)


if __name__ == "__main__":
    app.run(main)
