"""Sentences of film reviews, to be labelled by a teacher for the training of a student.

    python -m benchmarks.film_sentences --reviews=IMDB/train.tsv.gz --output=sentences.tsv
    python -m recipes.predict --model=runs/teacher/best --input=sentences.tsv --label_column= \\
        --output_dir=runs/said
    python -m benchmarks.film_sentences --examples=SST2/train.tsv \\
        --labelled=runs/said/predictions.tsv --output=train.tsv

The first writes sentences of 5 to 25 words, none twice; the last puts them, with the labels that
the teacher gave them, behind the examples that it learned from. With --student, what predict wrote
of the same sentences by a student, it takes only the --count sentences whose probabilities differ
most between the two models, of two labels.
"""

import random
import re

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("reviews", None, "File of reviews, with a column `sentence`.")
flags.DEFINE_string("examples", None, "File of examples, with columns `sentence` and `label`.")
flags.DEFINE_string("labelled", None, "What predict wrote of the sentences.")
flags.DEFINE_string("student", None, "What it wrote of them by a student, of two labels.")
flags.DEFINE_string("output", None, "File to write, .tsv.")
flags.DEFINE_integer("count", 40_000, "Sentences to write.", 1)
flags.DEFINE_integer("seed", 0, "Of their order.", 0)
flags.mark_flag_as_required("output")


def main():
    from tfnlp.utils.errors import InputError
    from tfnlp.utils.files import write_text

    if FLAGS.reviews:
        texts = [row["sentence"] for row in read(FLAGS.reviews, ["sentence"])]
        rows = [["sentence"], *([text] for text in sentences(texts))]
    elif FLAGS.examples and FLAGS.labelled:
        columns = ["sentence", "label"]
        predicted = [*columns, "probability"] if FLAGS.student else columns
        examples, labelled = read(FLAGS.examples, columns), read(FLAGS.labelled, predicted)
        if FLAGS.student:
            student = read(FLAGS.student, predicted)
            if [row["sentence"] for row in labelled] != [row["sentence"] for row in student]:
                raise InputError(
                    f"student={FLAGS.student} and labelled={FLAGS.labelled} have not the same "
                    "sentences; predict both from one file."
                )
            labelled = most_disputed(labelled, student, FLAGS.count)
        rows = [columns, *([row[name] for name in columns] for row in examples + labelled)]
    else:
        raise InputError("Give --reviews, or --examples and --labelled.")
    write_text(FLAGS.output, "".join("\t".join(row) + "\n" for row in rows))
    print(f"{len(rows) - 1} lines in {FLAGS.output}")


def sentences(reviews):
    """Return up to `FLAGS.count` distinct sentences of 5 to 25 words, shuffled by the seed."""
    found = {}
    for review in reviews:
        for sentence in re.split(r"(?<=[.!?])\s+", review):
            if 5 <= len(sentence.split()) <= 25 and '"' not in sentence:
                found[sentence.replace("\t", " ")] = None
    found = list(found)
    random.Random(FLAGS.seed).shuffle(found)
    return found[: FLAGS.count]


def read(path, columns):
    from tfnlp.text.reading.readers import read_columns

    return [row for _, row in read_columns(path, columns)]


def most_disputed(teacher, student, count):
    """Return the `count` rows of the teacher with the largest differences of probability.

    Rows are of the same sentences, and of two labels: the one not predicted has 1 - p.
    """

    def difference(rows):
        first, second = (float(row["probability"]) for row in rows)
        same = rows[0]["label"] == rows[1]["label"]
        return abs(first - second) if same else first + second - 1

    pairs = sorted(zip(teacher, student, strict=True), key=difference, reverse=True)
    return [row for row, _ in pairs[:count]]


if __name__ == "__main__":
    entry_point.run(main)
