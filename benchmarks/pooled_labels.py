"""Probabilities of labels by several models together, for a student to learn from.

    python -m recipes.predict --model=runs/teacher/best --input=texts.tsv --label_column= \\
        --probabilities --output_dir=runs/said
    python -m benchmarks.pooled_labels --train=train.tsv --input=texts.tsv \\
        --said=runs/said/predictions.tsv --output=pooled.tsv
    python -m recipes.finetune_classifier --train=pooled.tsv --label_columns=0,1 --dev=dev.tsv ...

Models are those whose predictions --said names, and the linear classifiers of --linear, which
learn --train here. A text's probabilities are the geometric mean of theirs, scaled to sum to 1
(Hinton 2002, 'Training products of experts', with equal weights). Behind them come the examples of
--train with probability 1 for their label. Where --input has labels, the accuracy of each model
and of all is printed, and nothing need be written.
"""

import numpy as np
from absl import flags
from scipy.special import log_expit, log_softmax

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("train", None, "Examples, with columns `sentence` and `label`.")
flags.DEFINE_string("input", None, "Texts, in a column `sentence`, with or without `label`.")
flags.DEFINE_list("said", [], "What predict wrote of --input, with --probabilities.")
flags.DEFINE_list(
    "linear",
    ["characters/logistic_regression", "morphemes/naive_bayes", "morphemes/logistic_regression"],
    "Linear classifiers, UNIT/NAME each.",
)
flags.DEFINE_string("output", None, "File to write, .tsv.")
flags.mark_flags_as_required(["train", "input"])


def main():
    from tfnlp.text.reading.readers import read_columns, read_header
    from tfnlp.utils.files import write_text

    train = [row for _, row in read_columns(FLAGS.train, ["sentence", "label"])]
    labelled = "label" in read_header(FLAGS.input)
    columns = ["sentence", "label"] if labelled else ["sentence"]
    inputs = [row for _, row in read_columns(FLAGS.input, columns)]
    texts = [row["sentence"] for row in inputs]
    labels = sorted({row["label"] for row in train})

    models = {path: said_log_probabilities(path, labels, texts) for path in FLAGS.said}
    for name in FLAGS.linear:
        models[name] = linear_log_probabilities(name, labels, train, texts)
    pooled = geometric_mean(list(models.values()))

    if labelled:
        targets = np.array([labels.index(row["label"]) for row in inputs])
        for name, scores in (models | {"all": pooled}).items():
            print(f"{name}\t{100 * np.mean(scores.argmax(-1) == targets):.2f}")
    if FLAGS.output:
        rows = [["sentence", *labels]]
        for text, probabilities in zip(texts, np.exp(pooled), strict=True):
            rows.append([text, *(f"{p:.6f}" for p in probabilities)])
        rows += [
            [row["sentence"], *("1" if row["label"] == label else "0" for label in labels)]
            for row in train
        ]
        write_text(FLAGS.output, "".join("\t".join(row) + "\n" for row in rows))
        print(f"{len(rows) - 1} lines in {FLAGS.output}")


def geometric_mean(log_probabilities):
    """Return (texts, labels), the logarithms of a mean that sums to 1, of one for each model."""
    return log_softmax(np.mean(log_probabilities, axis=0), axis=-1)


def said_log_probabilities(path, labels, texts):
    """Return (texts, labels) from a file of predict.

    Raises:
        InputError: where its texts are not `texts`.
    """
    from tfnlp.text.reading.readers import read_columns
    from tfnlp.utils.errors import InputError

    rows = [row for _, row in read_columns(path, ["sentence", *labels])]
    if [row["sentence"] for row in rows] != texts:
        raise InputError(f"said={path} has not the texts of input={FLAGS.input}.")
    values = np.array([[float(row[label]) for label in labels] for row in rows])
    return np.log(np.maximum(values, 1e-6))


def linear_log_probabilities(name, labels, train, texts):
    """Return (texts, labels) by a linear classifier that learns `train`, of two labels."""
    from tfnlp.baselines import BagOfWords, LinearClassifier

    unit, classifier = name.split("/")
    bag = BagOfWords(unit=unit, max_ngram=5 if unit == "characters" else 2)
    model = LinearClassifier(classifier, bag).fit(
        [row["sentence"] for row in train], [labels.index(row["label"]) for row in train]
    )
    scores = model.scores(texts)
    if scores.ndim == 2:
        return log_softmax(scores, axis=-1)
    return np.stack([log_expit(-scores), log_expit(scores)], axis=-1)


if __name__ == "__main__":
    entry_point.run(main)
