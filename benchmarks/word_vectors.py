"""Speed and quality of word2vec, compared with gensim on the same corpus.

    python -m benchmarks.word_vectors --similarity=ws353.tsv,simlex999.tsv \\
        --input=imdb/train.tsv.gz,imdb/dev.tsv.gz,imdb/test.tsv.gz --output_dir=runs/word_vectors

Both read the same words, with the same window, negatives, subsampling and epochs; gensim with one
worker. They take turns, a seed at a time; OUTPUT_DIR keeps their vectors. Run it with
PYTHONHASHSEED=0, by which gensim's first vectors are the same each time. Needs `.[test]`.
"""

import os
import pathlib
import re
import statistics
import time

from absl import flags

from recipes.shell import entry_point
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
flags.DEFINE_list("input", None, "Files of texts.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_list("similarity", None, "Tables of word pairs.")
flags.DEFINE_integer("epochs", 5, "Passes over the corpus.", 1)
flags.DEFINE_integer("seeds", 3, "Seeds.", 1)
flags.DEFINE_string("output_dir", None, "Folder to write figures and vectors into.")
flags.mark_flags_as_required(["input", "similarity", "output_dir"])


def main():
    if os.environ.get("PYTHONHASHSEED") != "0":
        raise InputError("Set the environment variable PYTHONHASHSEED=0.")
    entry_point.load_tensorflow()

    from tfnlp.text import read_every_text
    from tfnlp.utils.files import write_json

    texts = [line for path in FLAGS.input for line in read_every_text(path, FLAGS.text_column)]
    makers = {"tfnlp": tfnlp_vectors, "gensim": gensim_vectors}
    figures = {name: [] for name in makers}
    for seed in range(FLAGS.seeds):
        for name, make in makers.items():
            figures[name].append(measure(make, texts, seed))
            print(name, figures[name][-1], flush=True)
    for key in figures["tfnlp"][0]:
        ours, theirs = (statistics.mean(row[key] for row in figures[n]) for n in makers)
        print(f"{key}: tfnlp {ours:.4g}, gensim {theirs:.4g}, ratio {ours / theirs:.2f}")
    write_json(pathlib.Path(FLAGS.output_dir) / "word_vectors.json", figures)


def measure(make, texts, seed):
    """Return words a second and a score for each table, a dict."""
    from tfnlp.baselines import read_word_pairs, score_similarity

    vectors, words, seconds = make(texts, seed)
    vectors.save(pathlib.Path(FLAGS.output_dir) / f"{make.__name__}_{seed}.bin")
    row = {"words_per_second": words * FLAGS.epochs / seconds}
    for path in FLAGS.similarity:
        row[pathlib.Path(path).stem] = score_similarity(vectors, read_word_pairs(path)).score
    return row


def tfnlp_vectors(texts, seed):
    """Return our vectors, the number of words, and the seconds of training."""
    from tfnlp.baselines import Word2Vec, Word2VecSettings, read_word_corpus

    corpus = read_word_corpus(texts)
    model = Word2Vec(corpus, Word2VecSettings(epochs=FLAGS.epochs, seed=seed))
    start = time.perf_counter()
    vectors = model.train()
    return vectors, corpus.counts.sum(), time.perf_counter() - start


def gensim_vectors(texts, seed):
    """Return gensim's vectors, the number of words, and the seconds of training."""
    from gensim.models import Word2Vec

    from tfnlp.baselines import WordVectors

    sentences = [re.findall(r"\w+", text.lower()) for text in texts]
    model = Word2Vec(
        vector_size=100, window=5, negative=5, sg=1, min_count=5, workers=1, seed=seed
    )
    model.build_vocab(sentences)
    words = sum(model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key)
    start = time.perf_counter()
    model.train(sentences, total_examples=len(sentences), epochs=FLAGS.epochs)
    seconds = time.perf_counter() - start
    return WordVectors(model.wv.index_to_key, model.wv.vectors), words, seconds


if __name__ == "__main__":
    entry_point.run(main)
