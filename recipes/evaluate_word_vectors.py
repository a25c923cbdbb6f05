"""Scores word vectors: similarity, analogies, neighbours, the odd one out, a map.

    python -m recipes.evaluate_word_vectors --vectors=runs/vectors/vectors.bin \\
        --similarity=ws353.tsv,simlex999.tsv --analogies=questions-words.txt
    python -m recipes.evaluate_word_vectors --vectors=glove.6B.100d.txt --nearest=film,king \\
        --odd_one_out="film,movie,river" --map=map.png

Similarity is Spearman's correlation with the column `score` of pairs `word1` and `word2`.
Analogies are completed by 3CosAdd and by 3CosMul. Questions with a word that has no vector are
counted and left out.
"""

from absl import flags

from recipes.shell import entry_point
from recipes.shell.command_line import check_output, refuse_without
from tfnlp import baselines, plots
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
flags.DEFINE_string("vectors", None, "word2vec's text or binary (.bin) file, or GloVe's.")
flags.DEFINE_list("similarity", [], "Tables of word pairs and their similarity.")
flags.DEFINE_string("analogies", None, "File of analogies, four words on a line.")
flags.DEFINE_list("nearest", None, "Words to print the nearest ones of.")
flags.DEFINE_integer("k", 10, "Nearest words to print.", 1)
flags.DEFINE_list("odd_one_out", [], "Words, to print the one that does not belong.")
flags.DEFINE_string("map", None, "Picture (.png) of the commonest words in two dimensions.")
flags.DEFINE_integer("map_words", 200, "Words in the picture.", 2)
flags.mark_flag_as_required("vectors")


def main():
    if not (
        FLAGS.similarity or FLAGS.analogies or FLAGS.nearest or FLAGS.odd_one_out or FLAGS.map
    ):
        raise InputError("Give --similarity, --analogies, --nearest, --odd_one_out or --map.")
    refuse_without(["k"], "nearest")
    refuse_without(["map_words"], "map")
    if FLAGS.map:
        check_output("map", ".png")
    pairs = {path: baselines.read_word_pairs(path) for path in FLAGS.similarity}
    analogies = baselines.read_analogies(FLAGS.analogies) if FLAGS.analogies else {}
    vectors = baselines.WordVectors.load(FLAGS.vectors)
    for word in (*(FLAGS.nearest or []), *FLAGS.odd_one_out):
        if word not in vectors:
            raise InputError(f"{word!r} has no vector in {FLAGS.vectors}.")
    for path in FLAGS.similarity:
        print_score(path, "Spearman", baselines.score_similarity(vectors, pairs[path]))
    for rule in ("3CosAdd", "3CosMul") if analogies else ():
        results = {
            name: baselines.score_analogies(vectors, questions, rule == "3CosMul")
            for name, questions in analogies.items()
        }
        everything = baselines.pooled_score(results.values())
        if not everything.known:
            raise InputError(f"No analogy of {FLAGS.analogies} has vectors in {FLAGS.vectors}.")
        for name, result in {**results, "all analogies": everything}.items():
            print_score(name, rule, result)
    for word in FLAGS.nearest or []:
        nearest = vectors.nearest(word, FLAGS.k)
        print(f"{word}:", ", ".join(f"{other} {cosine:.2f}" for other, cosine in nearest))
    if FLAGS.odd_one_out:
        print("odd one out:", vectors.odd_one_out(FLAGS.odd_one_out))
    if FLAGS.map:
        plots.plot_word_map(vectors, FLAGS.map, FLAGS.map_words)


def print_score(name, measure, result):
    """Print a `WordScore`."""
    print(f"{name}: {measure} {result.score:.4f} on {result.known} of {result.total}")


if __name__ == "__main__":
    entry_point.run(main)
