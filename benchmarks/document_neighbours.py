"""Accuracy of nearest neighbours by distances of documents.

    python -m benchmarks.document_neighbours --train=imdb/train.tsv.gz --test=imdb/test.tsv.gz \\
        --vectors=runs/vectors/vectors.bin --output_dir=runs/neighbours

Classifies --queries texts of the test file by the --k nearest of --documents texts of the training
file, the same for every distance: Euclidean distances and cosines of counts, TF-IDF and latent
semantic analysis, L1 distances of L1-normalised counts (Sato et al. 2021), cosines of mean word
vectors, and the word mover's distance, both without English stop words. Needs tfnlp[words].
"""

import dataclasses
import pathlib
import time

import numpy as np
from absl import flags
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize

from recipes import entry_point
from tfnlp import baselines, text
from tfnlp.utils.files import write_json

FLAGS = flags.FLAGS
flags.DEFINE_string("train", None, "Labelled texts to search.")
flags.DEFINE_string("test", None, "Labelled texts to classify.")
flags.DEFINE_string("vectors", None, "Word vectors.")
flags.DEFINE_enum("unit", "words", ["words", "morphemes"], "Counted tokens.")
flags.DEFINE_integer("documents", 1000, "Texts to search.", 1)
flags.DEFINE_integer("queries", 200, "Texts to classify.", 1)
flags.DEFINE_integer("k", 5, "Neighbours that vote.", 1)
flags.DEFINE_integer("seed", 0, "Seed of the samples.")
flags.DEFINE_string("output_dir", None, "Folder to write neighbours.json into.")
flags.mark_flags_as_required(["train", "test", "vectors", "output_dir"])


def main():
    vectors = baselines.WordVectors.load(FLAGS.vectors)
    train = sample(FLAGS.train, FLAGS.documents, vectors)
    test = sample(FLAGS.test, FLAGS.queries, vectors)
    figures = {}
    for name, classify in {
        **bags(),
        "mean vectors, cosine": means,
        "word mover's": movers,
    }.items():
        start = time.perf_counter()
        predicted = classify(train, test, vectors)
        seconds = time.perf_counter() - start
        accuracy = float(np.mean(np.array(predicted) == [label for *_, label in test]))
        figures[name] = {"accuracy": accuracy, "ms_per_query": 1000 * seconds / len(test)}
        print(f"{name}: {accuracy:.3f}, {1000 * seconds / len(test):.1f} ms a query", flush=True)
    write_json(pathlib.Path(FLAGS.output_dir) / "neighbours.json", figures)


def sample(path, count, vectors):
    """Return `count` texts with a known word, as a list of (text, document, label)."""
    examples = text.read_examples(path)
    split, rows = baselines.SPLITTERS[FLAGS.unit], []
    for i in np.random.default_rng(FLAGS.seed).permutation(len(examples)):
        words = split(examples.texts[i])
        if any(word in vectors and word not in ENGLISH_STOP_WORDS for word in words):
            document = baselines.Document(words, vectors)
            rows.append((examples.texts[i], document, examples.labels[i]))
        if len(rows) == count:
            break
    return rows


def bags():
    """Return {name: classify} of the distances of bags of words."""
    counts = baselines.BagOfWords(unit=FLAGS.unit, max_ngram=1, weighting="counts")
    tfidf = dataclasses.replace(counts, weighting="tfidf")
    lsa = dataclasses.replace(tfidf, lsa_dim=100)

    def by(bag, metric, scale=None):
        def classify(train, test, vectors):
            vectorizer = baselines.make_vectorizer(bag)
            rows = vectorizer.fit_transform([row[0] for row in train])
            queries = vectorizer.transform([row[0] for row in test])
            if scale:
                rows, queries = normalize(rows, scale), normalize(queries, scale)
            return vote(rows, [row[2] for row in train], queries, metric)

        return classify

    return {
        "counts, Euclidean": by(counts, "euclidean"),
        "counts, cosine": by(counts, "cosine"),
        "counts with norm 1, L1": by(counts, "manhattan", "l1"),
        "TF-IDF, Euclidean": by(tfidf, "euclidean"),
        "TF-IDF, cosine": by(tfidf, "cosine"),
        "TF-IDF with L1 norm 1, L1": by(tfidf, "manhattan", "l1"),
        "LSA, cosine": by(lsa, "cosine"),
    }


def vote(rows, labels, queries, metric):
    """Return the label of most of the k nearest rows for each query."""
    neighbours = KNeighborsClassifier(FLAGS.k, metric=metric, algorithm="brute")
    return neighbours.fit(rows, labels).predict(queries)


def means(train, test, vectors):
    """Classify by cosines of mean vectors."""
    rows, queries = ([row[1].centroid for row in side] for side in (train, test))
    return vote(np.array(rows), [row[2] for row in train], np.array(queries), "cosine")


def movers(train, test, vectors):
    """Classify by the word mover's distance, pruned."""
    index, solved = baselines.DocumentIndex([document for _, document, _ in train]), 0
    predicted = []
    for _, document, _ in test:
        nearest = index.nearest(document, FLAGS.k)
        solved += index.solved
        predicted.append(np.bincount([train[i][2] for i, _ in nearest]).argmax())
    print(f"  {solved / len(test):.0f} of {len(train)} distances solved for a query")
    return predicted


if __name__ == "__main__":
    entry_point.run(main)
