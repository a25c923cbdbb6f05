"""Writes contextual embeddings of texts: one vector for each text or for each token.

    python -m recipes.extract_features --model_dir=MODEL --input=texts.tsv \\
        --output=features.npz --layers=sum_last_four
"""

from absl import flags, logging

from recipes import common
from tfnlp import checkpoints, tasks, text

FLAGS = flags.FLAGS
flags.DEFINE_string("input", None, "File of texts: .tsv, .csv, .jsonl or .txt, or with .gz.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_string("pair_column", None, "Column of the second text, for pairs.")
flags.DEFINE_string("output", None, "File to write: .npz or .parquet.")
flags.DEFINE_enum(
    "layers",
    "last",
    ["last", "second_to_last", "sum_last_four", "concat_last_four"],
    "Which layers' hidden states, and how they are joined.",
)
flags.DEFINE_enum(
    "pooling", "mean", ["mean", "first", "none"], "Over the tokens; none: one row for each token."
)
flags.DEFINE_integer("max_length", 128, "Longest input in tokens; the rest is cut.", 3)
flags.DEFINE_integer("batch_size", 32, "Texts in a batch.", 1)
common.define_model_flag()
flags.mark_flags_as_required(["input", "output"])


def main():

    tasks.check_features_file(FLAGS.output)
    examples = text.read_examples(FLAGS.input, FLAGS.text_column, FLAGS.pair_column, None)
    tokenizer = text.load_tokenizer(FLAGS.model_dir)
    model = checkpoints.load_model(FLAGS.model_dir, hidden_states=True)
    common.check_fit(model, tokenizer)
    encodings = tokenizer.encode(examples.texts, examples.pairs, FLAGS.max_length)
    batches = text.LengthBatches(encodings, FLAGS.batch_size, pad_token_id=tokenizer.pad_token_id)
    features = tasks.extract_features(model, batches, FLAGS.layers, FLAGS.pooling)
    tasks.write_features(FLAGS.output, features, examples.texts, encodings)
    logging.info("Wrote the features of %d texts to %s.", len(features), FLAGS.output)


if __name__ == "__main__":
    common.run(main)
