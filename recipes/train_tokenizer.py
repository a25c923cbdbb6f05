"""Learns a tokenizer from texts: WordPiece, byte-level BPE or SentencePiece unigram.

    python -m recipes.train_tokenizer --input=texts.tsv --kind=unigram --output_dir=tokenizer

OUTPUT_DIR loads with transformers and with tfnlp.text.load_tokenizer. In a folder that holds a
tokenizer that one is replaced; a model beside it stays as it is, and must be of the same family.
"""

from absl import flags, logging

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_list("input", None, "Files of texts: .tsv, .csv, .jsonl or .txt, or with .gz.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_string("pair_column", None, "Column of the second text, if any.")
flags.DEFINE_string("output_dir", None, "Folder to write the tokenizer into.")
flags.DEFINE_enum("kind", "wordpiece", ["wordpiece", "bpe", "unigram"], "Kind of tokenizer.")
flags.DEFINE_enum(
    "family",
    None,
    ["bert", "gpt2", "roberta", "deberta", "albert", "xlnet", "deberta-v2"],
    "Whose special tokens; bert, roberta or albert, as the kind is, if not given.",
)
flags.DEFINE_integer("vocabulary_size", 8000, "The most tokens to learn.", 10)
flags.DEFINE_bool("lowercase", True, "Whether WordPiece and unigram lowercase.")
flags.mark_flags_as_required(["input", "output_dir"])


def main():
    from tfnlp.text import read_examples
    from tfnlp.text.load import train_tokenizer

    texts = []
    for path in FLAGS.input:
        examples = read_examples(path, FLAGS.text_column, FLAGS.pair_column, None)
        texts += examples.texts + (examples.pairs or [])
    tokenizer, _ = train_tokenizer(
        texts, FLAGS.kind, FLAGS.vocabulary_size, FLAGS.family, FLAGS.lowercase
    )
    tokenizer.save(FLAGS.output_dir)
    pieces = sum(len(tokenizer.tokens(text)) for text in texts[:1000])
    words = sum(len(text.split()) for text in texts[:1000])
    logging.info(
        "Wrote %d tokens to %s; %.2f tokens a word in the first texts.",
        tokenizer.vocabulary_size,
        FLAGS.output_dir,
        pieces / max(words, 1),
    )


if __name__ == "__main__":
    common.run(main, tensorflow=False)
