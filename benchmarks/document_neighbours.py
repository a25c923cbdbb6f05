"""Accuracy of nearest neighbours by distances of documents.

    python -m benchmarks.document_neighbours --train=imdb/train.tsv.gz --test=imdb/test.tsv.gz \\
        --vectors=runs/vectors/vectors.bin --output_dir=runs/neighbours

Classifies --queries texts of the test file by the --k nearest of --documents texts of the training
file, the same for every distance, in --samples samples: Euclidean distances and cosines of counts,
TF-IDF, latent semantic analysis and mean word vectors, L1 distances of L1-normalised counts (Sato
et al. 2021), and the word mover's distance. Mean vectors and the word mover's distance leave stop
words out, English ones or kiwipiepy's Korean ones. Rows of TF-IDF and of latent semantic analysis
have length 1, so that both distances rank alike. Needs `.[words]`.
"""

import collections
import contextlib
import dataclasses
import pathlib
import statistics
import time

import numpy as np
from absl import flags
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize

from recipes.shell import entry_point
from tfnlp import baselines, text
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json

FLAGS = flags.FLAGS
flags.DEFINE_string("train", None, "Labelled texts to search.")
flags.DEFINE_string("test", None, "Labelled texts to classify.")
flags.DEFINE_string("vectors", None, "Word vectors.")
flags.DEFINE_enum("unit", "words", ["words", "morphemes"], "Counted tokens.")
flags.DEFINE_integer("documents", 1000, "Texts to search.", 1)
flags.DEFINE_integer("queries", 200, "Texts to classify.", 1)
flags.DEFINE_integer("max_words", None, "Words of a text at most; longer texts are left out.", 1)
flags.DEFINE_integer("k", 5, "Neighbours that vote.", 1)
flags.DEFINE_integer("samples", 3, "Samples.", 2)
flags.DEFINE_string("output_dir", None, "Folder to write neighbours.json into.")
flags.mark_flags_as_required(["train", "test", "vectors", "output_dir"])


def main():
    vectors = baselines.WordVectors.load(FLAGS.vectors)
    examples = [text.read_examples(path) for path in (FLAGS.train, FLAGS.test)]
    figures = collections.defaultdict(list)
    for seed in range(FLAGS.samples):
        sizes = FLAGS.documents, FLAGS.queries
        train, test = (sample(*side, vectors, seed) for side in zip(examples, sizes, strict=True))
        for name, classify in methods().items():
            start = time.perf_counter()
            predicted = classify(train, test)
            seconds = time.perf_counter() - start
            accuracy = np.mean(np.array(predicted) == [label for *_, label in test])
            row = {"accuracy": 100 * float(accuracy), "ms_per_query": 1000 * seconds / len(test)}
            figures[name].append(row)
            print(name, row, flush=True)
    write_json(pathlib.Path(FLAGS.output_dir) / "neighbours.json", figures)
    for name, rows in figures.items():
        accuracies = [row["accuracy"] for row in rows]
        milliseconds = statistics.median(row["ms_per_query"] for row in rows)
        print(f"{name}: {np.mean(accuracies):.1f} ± {np.std(accuracies, ddof=1):.1f}, ", end="")
        print(f"{milliseconds:.1f} ms a query")


def sample(examples, count, vectors, seed):
    """Return `count` texts with a known word, as a list of (text, document, label)."""
    split, left_out, rows = baselines.SPLITTERS[FLAGS.unit], stop_words(), []
    for i in np.random.default_rng(seed).permutation(len(examples)):
        words = split(examples.texts[i])
        if not FLAGS.max_words or len(words) <= FLAGS.max_words:
            # A text without a known word has no distance.
            with contextlib.suppress(InputError):
                document = baselines.Document(words, vectors, left_out)
                rows.append((examples.texts[i], document, examples.labels[i]))
        if len(rows) == count:
            break
    return rows


def stop_words():
    """Return the stop words of the unit's language."""
    if FLAGS.unit == "words":
        return ENGLISH_STOP_WORDS
    from kiwipiepy.utils import Stopwords

    return {form for form, _ in Stopwords().stopwords}


def methods():
    """Return {name: classify} of all distances."""
    return bags() | {
        "mean vectors, Euclidean": means("euclidean"),
        "mean vectors, cosine": means("cosine"),
        "word mover's": movers,
    }


def bags():
    """Return {name: classify} of the distances of bags of words."""
    counts = baselines.BagOfWords(unit=FLAGS.unit, max_ngram=1, weighting="counts")
    tfidf = dataclasses.replace(counts, weighting="tfidf")
    lsa = dataclasses.replace(tfidf, lsa_dim=100)

    def by(bag, metric, scale=None):
        def classify(train, test):
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
        "counts of L1 norm 1, L1": by(counts, "manhattan", "l1"),
        "TF-IDF, cosine": by(tfidf, "cosine"),
        "TF-IDF of L1 norm 1, L1": by(tfidf, "manhattan", "l1"),
        "LSA, cosine": by(lsa, "cosine"),
    }


def vote(rows, labels, queries, metric):
    """Return the label of most of the k nearest rows for each query."""
    neighbours = KNeighborsClassifier(FLAGS.k, metric=metric, algorithm="brute")
    return neighbours.fit(rows, labels).predict(queries)


def means(metric):
    """Return a function that classifies by distances of mean vectors."""

    def classify(train, test):
        rows, queries = (np.array([row[1].centroid for row in side]) for side in (train, test))
        return vote(rows, [row[2] for row in train], queries, metric)

    return classify


def movers(train, test):
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
