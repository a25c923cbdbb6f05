"""Trains word vectors on plain text: word2vec, fastText or GloVe.

    python -m recipes.train_word_vectors --input=reviews.txt --output_dir=runs/vectors
    python -m recipes.train_word_vectors --input=nsmc/unlabelled.txt.gz --unit=morphemes \\
        --max_ngram=5 --output_dir=runs/korean

OUTPUT_DIR/vectors.bin is word2vec's binary format and vectors.txt its text format; gensim and
`recipes.evaluate_word_vectors` open both. The same command resumes a stopped or killed run, which
ends with the same vectors; its state is saved after each epoch, and every ten minutes.
"""

import dataclasses

from absl import flags, logging

from recipes.flags import dataclass_flags, training_flags
from recipes.shell import entry_point
from recipes.shell.command_line import refuse_beside, refuse_without
from tfnlp import baselines, text
from tfnlp.baselines.word_vector_settings import GloveSettings, Word2VecSettings
from tfnlp.utils.files import write_json

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "input", None, "Texts: .tsv, .csv, .jsonl, .parquet, or plain text; or with .gz."
)
flags.DEFINE_string("text_column", "sentence", "Column of the text in tables.")
training_flags.define_folder_flags()
flags.DEFINE_enum(
    "unit",
    "words",
    list(baselines.SPLITTERS),
    "Words in lower case, what stands between spaces, Korean morphemes, or characters.",
)
flags.DEFINE_string(
    "tokenizer_dir",
    None,
    "Folder of a tokenizer from train_tokenizer, whose pieces are taken for words in place of "
    "--unit; --embeddings of a fine-tuning with the same tokenizer then reads their vectors.",
)
flags.DEFINE_integer("min_count", 5, "Occurrences of a word at least.", 1)
METHODS = {"word2vec": Word2VecSettings, "glove": GloveSettings}
flags.DEFINE_enum("method", "word2vec", list(METHODS), "Method; fastText is --max_ngram=5.")
dataclass_flags.define_choice(METHODS)
flags.mark_flag_as_required("input")


def main():
    settings = dataclass_flags.read(METHODS[FLAGS.method])
    dataclass_flags.refuse_others(settings, METHODS.values(), f"with --method={FLAGS.method}")
    if FLAGS.tokenizer_dir:
        place = f"tokenizer_dir={FLAGS.tokenizer_dir}, whose pieces are the words"
        refuse_beside(["unit"], place)
    refuse_without(["min_ngram", "buckets"], "max_ngram")
    if FLAGS.objective == "hierarchical_softmax":
        refuse_beside(["negatives"], "objective=hierarchical_softmax")
    texts = (
        line for path in FLAGS.input for line in text.read_every_text(path, FLAGS.text_column)
    )
    unit, split = FLAGS.unit, FLAGS.unit
    if FLAGS.tokenizer_dir:
        unit, split = "pieces", text.load_tokenizer(FLAGS.tokenizer_dir).tokens
    corpus = baselines.read_word_corpus(texts, split, FLAGS.min_count)
    logging.info("%d words, %d of them different.", corpus.counts.sum(), len(corpus.words))
    entry_point.load_tensorflow()
    decisive = training_flags.decisive_flags() | dataclasses.asdict(settings)
    run = training_flags.run_folder(decisive)
    with run.alone():
        vectors = make_model(corpus, settings).train(run, {"input": corpus.fingerprint()})
        for name in ("vectors.txt", "vectors.bin"):
            vectors.save(run.path / name)
    facts = {"unit": unit, "words": len(vectors), "corpus": int(corpus.counts.sum())}
    write_json(run.path / "figures.json", facts)
    logging.info("The vectors are in %s.", run.path / "vectors.txt")


def make_model(corpus, settings):
    """Return the `Word2Vec` or `Glove` of the flags."""
    if FLAGS.method == "word2vec":
        return baselines.Word2Vec(corpus, settings)
    pairs = baselines.count_pairs(corpus, settings.window)
    return baselines.Glove(corpus.words, pairs, settings)


if __name__ == "__main__":
    entry_point.run(main)
