"""Prunes the tokens that a corpus or some scripts do not need from a model and its tokenizer.

    python -m recipes.prune_vocabulary --model_dir=runs/student/best --text=train.tsv \\
        --output_dir=runs/small

keeps all tokens of the texts, so that the model's outputs for them stay the same; with
--keep_tokens=8000 the most frequent ones and single characters, so that other texts can be read
too; with --scripts=Hangul,Latin, with or without texts, all tokens without letters of other
scripts, so that the outputs for any text of these scripts stay the same. OUTPUT_DIR is a Hugging
Face folder to use, fine-tune or export; its figures.json has the sizes before and after. The
distillation recipes prune the vocabulary too, with --keep_tokens.
"""

import pathlib

from absl import flags, logging

from distill import compression
from recipes.flags import data_flags, model_flags
from recipes.shell import entry_point
from tfnlp import checkpoints, text
from tfnlp.utils.files import check_absent, write_json

FLAGS = flags.FLAGS
model_flags.define_model_flag()
flags.DEFINE_list(
    "text",
    None,
    "Files of texts, in the format of the task's recipe, such as a .conll of tagging or a .json "
    "of question answering; or .tsv, .csv, .jsonl, .parquet or .txt, or with .gz.",
)
data_flags.define_column_flags()
flags.DEFINE_list(
    "scripts", [], "Scripts of Unicode whose tokens stay, such as Hangul,Latin or Han,Hiragana."
)
flags.DEFINE_integer(
    "keep_tokens",
    None,
    "Most tokens to keep, the commonest first; all of the texts and scripts if not given.",
    1,
)
flags.DEFINE_string("output_dir", None, "Folder to write the smaller model into.")
flags.mark_flags_as_required(["output_dir"])


def main():
    folder = pathlib.Path(FLAGS.output_dir)
    check_absent(folder / "config.json")
    entry_point.load_tensorflow()
    texts, columns = [] if FLAGS.text else None, (FLAGS.text_column, FLAGS.pair_column)
    for path in FLAGS.text or ():
        texts += data_flags.read_inputs(path, FLAGS.model_dir, *columns).each_text()
    tokenizer = text.load_tokenizer(FLAGS.model_dir)
    head = checkpoints.read_head(FLAGS.model_dir)
    model = checkpoints.load_model(FLAGS.model_dir, head)
    smaller, pruned = compression.prune_vocabulary(
        model, tokenizer, texts, FLAGS.keep_tokens, FLAGS.scripts
    )
    labels = checkpoints.read_labels(FLAGS.model_dir)
    settings = checkpoints.read_task_settings(FLAGS.model_dir)
    # A language model does not use its pooler, but a later fine-tuning of it may.
    pooler = checkpoints.read_pooler(FLAGS.model_dir) if head == "masked_lm" else None
    checkpoints.save_model(smaller, folder, labels, pruned, settings, pooler=pooler)
    figures = compression.compare_models(model, smaller)
    if texts is None:
        figures["tokens"] = tokenizer.vocabulary_size, pruned.vocabulary_size
    else:
        figures |= compression.compare_tokenizers(tokenizer, pruned, texts)
    write_json(folder / "figures.json", figures)
    for name, values in figures.items():
        shown = " to ".join(f"{round(value, 4):,}" for value in values)
        logging.info("%s: %s.", name.replace("_", " ").capitalize(), shown)
    before, after = figures.get("unknown_share", (0, 0))
    if after > before + 0.01:
        logging.warning(
            "%.0f %% of the texts' tokens are unknown to the smaller vocabulary, so that its "
            "outputs for them are poor; give more --keep_tokens.",
            100 * after,
        )


if __name__ == "__main__":
    entry_point.run(main)
