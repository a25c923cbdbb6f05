"""Makes static vectors of a teacher: one vector for each token, of which a text has the mean.

    python -m recipes.make_static_vectors --teacher_dir=all-MiniLM-L6-v2 --output_dir=runs/static

No training and no text is needed: each token goes through the teacher by itself, and PCA shortens
the vectors. With --weights=sif --text=train.tsv tokens are weighted by how often texts have them;
--scripts and --keep_tokens prune the vocabulary first, as recipes.prune_vocabulary does.
OUTPUT_DIR is a folder of sentence-transformers and of model2vec, to fine-tune or to export.
"""

import pathlib

from absl import flags, logging

from distill import compression, learning
from recipes.flags import data_flags, dataclass_flags
from recipes.shell import entry_point
from recipes.shell.command_line import no_effect
from tfnlp import checkpoints, text
from tfnlp.utils.files import check_absent

FLAGS = flags.FLAGS
flags.DEFINE_string("teacher_dir", None, "Folder of an encoder, or its name on the Hub.")
dataclass_flags.define(learning.StaticSettings)
flags.DEFINE_list("text", None, "Files of texts to count tokens in, for the weights sif.")
data_flags.define_column_flags("sentence")
flags.DEFINE_list("scripts", [], "Scripts of Unicode whose tokens stay; all if not given.")
flags.DEFINE_integer("keep_tokens", None, "Most tokens to keep, the commonest first.", 1)
flags.DEFINE_string("output_dir", None, "Folder to write the model into.")
flags.mark_flags_as_required(["teacher_dir", "output_dir"])


def main():
    folder = pathlib.Path(FLAGS.output_dir)
    check_absent(folder / "config.json")
    settings = dataclass_flags.read(learning.StaticSettings)
    texts, columns = [] if FLAGS.text else None, (FLAGS.text_column, FLAGS.pair_column)
    for path in FLAGS.text or ():
        texts += data_flags.read_inputs(path, None, *columns).each_text()
    settings.check_texts(texts)
    if texts and settings.weights != "sif" and not FLAGS.keep_tokens:
        raise no_effect("text", f"with weights={settings.weights} and without `keep_tokens`")
    entry_point.load_tensorflow()
    tokenizer = text.load_tokenizer(FLAGS.teacher_dir)
    teacher, tokenizer = compression.prune_vocabulary(
        checkpoints.load_model(FLAGS.teacher_dir),
        tokenizer,
        texts if FLAGS.keep_tokens else None,
        FLAGS.keep_tokens or tokenizer.vocabulary_size,  # even then without [unused1] and the like
        FLAGS.scripts,
    )
    model = learning.make_static_embedder(teacher, tokenizer, settings, texts)
    checkpoints.save_model(model, folder, None, tokenizer)
    logging.info("Wrote %d vectors of %d dimensions.", tokenizer.vocabulary_size, settings.dims)


if __name__ == "__main__":
    entry_point.run(main)
