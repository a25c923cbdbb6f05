"""Fine-tunes a model to tag words or characters, as in named-entity recognition.

    python -m recipes.finetune_tagger --model_dir=MODEL --train=wnut17/train.conll \\
        --dev=wnut17/dev.conll --output_dir=runs/entities

Files are in CoNLL columns, separated by tabs or else by spaces: a word and, last, its tag (B-,
I-, O) on each line, an empty line after each sentence. The score is the F1 of whole entities, as
seqeval counts them. Other tags are named by --labels: those of IOBES or BILOU are entities too,
of any others, such as parts of speech, the score is the share of right ones. Long sentences are
read in windows.

Files of KLUE-NER, with a character and its tag on each line, are read by --unit=character: the
characters are tokenised as the text that they are, and the score is KLUE's entity F1.
"""

from absl import flags

from recipes import common, compression_flags, model_flags
from tfnlp import tasks, text

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "labels", None, "Tags in order of their ids; those in --train, which are of BIO, if not given."
)
flags.DEFINE_enum("unit", "word", ["word", "character"], "What has a tag each.")
common.define_tagger_flags()
model_flags.define_model_flags()
common.define_split_flags()
common.define_training_flags(epochs=3, learning_rate=5e-5)
common.define_adversarial_flags()
compression_flags.define_training_flags()


def main():

    options = FLAGS.unit, FLAGS.comment_prefix
    train = tasks.read_tagged(FLAGS.train, FLAGS.labels, *options)
    labels = FLAGS.labels or tasks.tag_names(train)
    dev = tasks.read_tagged(FLAGS.dev, labels, *options)
    test = tasks.read_tagged(FLAGS.test, labels, *options) if FLAGS.test else None
    # At inference, texts are split into words as in these sentences.
    splitter = text.WordSplitter.from_sentences(train.sentences) if FLAGS.unit == "word" else None
    task = tasks.Tagging(labels, FLAGS.stride, FLAGS.unit, splitter)
    common.finetune(task, lambda: model_flags.make_model(task, train.texts), train, dev, test)


if __name__ == "__main__":
    common.run(main, check=model_flags.check_flags)
