"""Fine-tunes a model to tag words or characters, as in named-entity recognition.

    python -m recipes.finetune_tagger --model_dir=MODEL --train=wnut17/train.conll \\
        --dev=wnut17/dev.conll --output_dir=runs/entities

Files have rows of JSON, JSON Lines or Parquet with lists of words and tags (`tokens`, `tags`), or
are in CoNLL columns, separated by tabs or else by spaces: a word and, last, its tag (B-,
I-, O) on each line, an empty line after each sentence. The score is the F1 of whole entities, as
in seqeval. Give other tags by --labels: those of IOBES or BILOU are entities too; the score of any
others, such as parts of speech, is the accuracy. Long sentences are read in windows.

--unit=character reads files of KLUE-NER, with a character and its tag on each line: the characters
are tokenised as one text, and the score is KLUE's entity F1.
"""

from absl import flags

from recipes.flags import data_flags, task_flags
from recipes.shell import entry_point, finetuning_run

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "labels", None, "Tags in the order of their ids; the BIO tags of --train if not given."
)
flags.DEFINE_enum("unit", "word", ["word", "character"], "Unit that has a tag.")
task_flags.define_tagger_flags()
data_flags.define_split_flags()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    task, splits = task_flags.read_tagging(FLAGS.labels, FLAGS.unit)
    finetuning_run.finetune(task, splits["train"].texts, splits)


if __name__ == "__main__":
    entry_point.run(main)
