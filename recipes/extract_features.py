"""Writes contextual embeddings of texts: one vector for each text or for each token.

    python -m recipes.extract_features --model_dir=MODEL --input=texts.tsv \\
        --output=features.npz --layers=sum_last_four

The output has the vectors in the order of the texts.
"""

from absl import flags, logging

from recipes.flags import data_flags, model_flags
from recipes.shell import entry_point
from tfnlp import checkpoints, knowledge, tasks, text

FLAGS = flags.FLAGS
flags.DEFINE_string("input", None, "Texts: .tsv, .csv, .jsonl, .parquet or .txt, or with .gz.")
data_flags.define_column_flags("sentence")
flags.DEFINE_string("output", None, "File to write: .npz or .parquet.")
flags.DEFINE_enum(
    "layers",
    "last",
    ["last", "second_to_last", "sum_last_four", "concat_last_four"],
    "Layers whose hidden states are used, and how they are joined.",
)
flags.DEFINE_enum(
    "pooling", "mean", ["mean", "first", "none"], "Pooling over tokens; none: a vector for each."
)
flags.DEFINE_integer("max_length", 128, "Longest input in tokens; the rest is cut.", 3)
flags.DEFINE_integer("batch_size", 32, "Texts in a batch.", 1)
model_flags.define_model_flag()
flags.mark_flags_as_required(["input", "output"])


def main():
    tasks.check_features_file(FLAGS.output)
    examples = text.read_examples(FLAGS.input, FLAGS.text_column, FLAGS.pair_column, None)
    tokenizer = knowledge.load_entity_tokenizer(FLAGS.model_dir)
    entry_point.load_tensorflow()
    # A masked LM's folder has its head, and no pooler for an encoder alone.
    head = "masked_lm" if checkpoints.read_head(FLAGS.model_dir) == "masked_lm" else None
    model = checkpoints.load_model(FLAGS.model_dir, head, hidden_states=True)
    model_flags.check_fit(model, tokenizer)
    encodings = tokenizer.encode(examples.texts, examples.pairs, FLAGS.max_length)
    batches = text.LengthBatches(encodings, FLAGS.batch_size, pad_token_id=tokenizer.pad_token_id)
    features = tasks.extract_features(model, batches, FLAGS.layers, FLAGS.pooling)
    tasks.write_features(FLAGS.output, features, examples.texts, encodings)
    logging.info("Wrote the features of %d texts to %s.", len(features), FLAGS.output)


if __name__ == "__main__":
    entry_point.run(main)
