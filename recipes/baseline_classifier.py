"""Trains classical classifiers of texts or pairs, to compare neural ones with.

    python -m recipes.baseline_classifier --train=train.tsv --dev=dev.tsv --test=test.tsv
    python -m recipes.baseline_classifier --train=nsmc/train.tsv.gz --dev=nsmc/dev.tsv.gz \\
        --units=words,characters,morphemes --output_dir=runs/baselines

Each is a bag of words, of characters or of Korean morphemes (`pip install ".[words]"`) and a
linear classifier: naive Bayes, logistic regression or a linear support vector machine. N-grams are
of up to 2 words or morphemes, or 5 characters, unless --max_ngram says otherwise. The table has
the scores, the size and the time of a text by itself; OUTPUT_DIR/baselines.json has them too. It
takes seconds.
"""

import dataclasses
import pathlib

from absl import flags

from recipes.flags import dataclass_flags, task_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group, refuse_beside
from tfnlp import baselines, tasks
from tfnlp.baselines.bag_of_words import UNITS
from tfnlp.utils.errors import unknown_name
from tfnlp.utils.files import write_json

FLAGS = flags.FLAGS
task_flags.define_classification_data_flags()
FLAGS["dev"].help = "File to score the classifiers on."
FLAGS["test"].help = "Second file to score them on, if given."
flags.DEFINE_string("positive_label", None, "Label whose F1 is reported.")
with group("Baselines"):
    flags.DEFINE_list("units", ["words", "characters"], f"Counted tokens: {', '.join(UNITS)}.")
    dataclass_flags.define(
        baselines.BagOfWords,
        *(
            field.name
            for field in dataclasses.fields(baselines.BagOfWords)
            if field.name != "unit"
        ),
        max_ngram=None,
    )
    flags.DEFINE_list("classifiers", list(baselines.CLASSIFIERS), "Classifiers to train.")
    flags.DEFINE_string("output_dir", None, "Folder to write baselines.json into, if given.")


def main():
    bags = [make_bag(unit) for unit in FLAGS.units]
    for name in FLAGS.classifiers:
        if name not in baselines.CLASSIFIERS:
            raise unknown_name("classifiers", name, baselines.CLASSIFIERS)
    splits = task_flags.read_labelled()
    names = splits["train"].label_names
    if FLAGS.multi_label:
        refuse_beside(["positive_label"], "`multi_label`")
        task = tasks.MultiLabelClassification(names)
    else:
        task = tasks.Classification(names, positive_label=FLAGS.positive_label)
    results = baselines.compare_baselines(task, splits, bags, FLAGS.classifiers)
    print_table(results)
    if FLAGS.output_dir:
        rows = [dataclasses.asdict(result) for result in results]
        write_json(pathlib.Path(FLAGS.output_dir) / "baselines.json", rows)


def make_bag(unit):
    """Return the `BagOfWords` of the flags; words have pairs and characters up to 5-grams."""
    max_ngram = FLAGS.max_ngram or (5 if unit == "characters" else 2)
    return dataclass_flags.read(baselines.BagOfWords, unit=unit, max_ngram=max_ngram)


def print_table(results):
    """Print scores, size in megabytes and milliseconds of a text for each baseline."""
    columns = list(results[0].scores)
    print("\t".join(["baseline", *columns, "MB", "ms"]))
    for result in results:
        scores = [f"{result.scores[column]:.4f}" for column in columns]
        size = f"{result.bytes / 1e6:.2f}"
        print("\t".join([result.name, *scores, size, f"{result.milliseconds:.2f}"]))


if __name__ == "__main__":
    entry_point.run(main)
