"""Fine-tunes a model to tag words, such as named entities.

    python -m recipes.finetune_tagger --model_dir=MODEL --train=wnut17/train.conll \\
        --dev=wnut17/dev.conll --output_dir=runs/entities

Files are in CoNLL columns, separated by tabs or else by spaces: a word and, last, its tag (B-,
I-, O) on each line, an empty line after each sentence. The score is the F1 of whole entities, as
seqeval counts them. Other tags are named by --labels: those of IOBES or BILOU are entities too,
of any others, such as parts of speech, the score is the share of right ones. Long sentences are
read in windows.
"""

from absl import flags

from recipes import common, models

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "labels", None, "Tags in order of their ids; those in --train, which are of BIO, if not given."
)
flags.DEFINE_integer("stride", 32, "Tokens that a window shares with the one before.", 0)
models.define_model_flags()
common.define_split_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)
common.define_adversarial_flags()


def main():
    from tfnlp.tasks import Tagging, read_tagged
    from tfnlp.tasks.tagging import tag_names

    train = read_tagged(FLAGS.train, FLAGS.labels)
    labels = FLAGS.labels or tag_names(train)
    dev = read_tagged(FLAGS.dev, labels)
    test = read_tagged(FLAGS.test, labels) if FLAGS.test else None
    task = Tagging(labels, FLAGS.stride)
    texts = [" ".join(words) for words in train.sentences]
    common.finetune(task, lambda: models.make_model(task, texts), train, dev, test)


if __name__ == "__main__":
    common.run(main)
