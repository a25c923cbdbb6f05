"""Trains a tokenizer: WordPiece, byte-level BPE, SentencePiece unigram, characters, words.

    python -m recipes.train_tokenizer --input=texts.tsv --kind=unigram --output_dir=tokenizer

OUTPUT_DIR loads with transformers and with tfnlp.text.load_tokenizer. A tokenizer in the folder is
replaced; a model in it stays, and must be able to read it. The tokens per word and the share of
unknown tokens are logged for --input and for --dev.
"""

from absl import flags, logging

from recipes.flags import data_flags
from recipes.shell import entry_point
from tfnlp import text

FLAGS = flags.FLAGS
flags.DEFINE_list("input", None, "Texts: .tsv, .csv, .jsonl, .parquet or .txt, or with .gz.")
flags.DEFINE_list("dev", None, "Files of further texts to measure the tokenizer on.")
data_flags.define_column_flags("sentence")
flags.DEFINE_string("output_dir", None, "Folder to write the tokenizer into.")
flags.DEFINE_enum(
    "kind",
    "wordpiece",
    ["wordpiece", "bpe", "unigram", "characters", "words"],
    "Kind of tokenizer.",
)
flags.DEFINE_enum(
    "family",
    None,
    ["bert", "elmo", "gpt2", "roberta", "deberta", "albert", "xlnet", "deberta-v2", "marian"]
    + ["xlm-roberta", "modernbert"],
    "Family of the special tokens; if not given bert, roberta, albert, gpt2 or elmo, by --kind.",
)
flags.DEFINE_integer("vocabulary_size", 8000, "Largest vocabulary.", 10)
flags.DEFINE_bool(
    "lowercase",
    None,
    "Lowercase, with WordPiece or unigram; if not given, WordPiece and ALBERT's unigram do, "
    "XLNet's, DeBERTa's and XLM-R's do not.",
)
flags.DEFINE_bool(
    "keep_accents",
    None,
    "Keep accents, and Hangul syllables whole, with ALBERT's and XLNet's unigram; if not given, "
    "ALBERT's does and XLNet's, as the released one, does not.",
)
flags.mark_flags_as_required(["input", "output_dir"])


def read_texts(paths):
    """Return all texts in --text_column and --pair_column of the files."""
    texts = []
    for path in paths:
        examples = text.read_examples(path, FLAGS.text_column, FLAGS.pair_column, None)
        texts += examples.texts + (examples.pairs or [])
    return texts


def main():
    family = text.family_of_kind(FLAGS.kind, FLAGS.family)
    if FLAGS.kind != "wordpiece":  # WordPiece fits models of any family
        text.check_tokenizer_family(FLAGS.output_dir, text.read_family(FLAGS.output_dir), family)
    texts = {"input": read_texts(FLAGS.input)}
    if FLAGS.dev:
        texts["dev"] = read_texts(FLAGS.dev)
    tokenizer, _ = text.train_tokenizer(
        texts["input"],
        FLAGS.kind,
        FLAGS.vocabulary_size,
        family,
        lowercase=FLAGS.lowercase,
        keep_accents=FLAGS.keep_accents,
    )
    tokenizer.save(FLAGS.output_dir)
    logging.info("Wrote %d tokens to %s.", tokenizer.vocabulary_size, FLAGS.output_dir)
    for name, split in texts.items():
        tokens, unknown = text.tokenizer_statistics(tokenizer, split)
        logging.info(
            "--%s: %.2f tokens a word, %.3f %% of them unknown.", name, tokens, 100 * unknown
        )


if __name__ == "__main__":
    entry_point.run(main)
