"""Confusion matrices of predicted labels."""

from tfnlp.utils.formatting import aligned


def confusion_matrix(truth, predictions, labels):
    """Count the predicted labels for each true label.

    Args:
        truth, predictions: the true and the predicted label of each example, lists of strings.
        labels: all labels, in the order of rows and columns.

    Returns:
        {"labels": list of C strings, "counts": C lists of C numbers}. Row i counts the examples
        with true label i, column j those with predicted label j.
    """
    counts = {label: dict.fromkeys(labels, 0) for label in labels}
    for label, predicted in zip(truth, predictions, strict=True):
        counts[label][predicted] += 1
    return {"labels": [*labels], "counts": [[*row.values()] for row in counts.values()]}


def matrix_rows(matrix):
    """Return a matrix of `confusion_matrix` as rows of strings, with a header row."""
    rows = [["true \\ predicted", *matrix["labels"]]]
    for label, counts in zip(matrix["labels"], matrix["counts"], strict=True):
        rows.append([label, *map(str, counts)])
    return rows


def confusion_table(matrix):
    """Return the lines of a matrix of `confusion_matrix` as a text table."""
    return aligned(matrix_rows(matrix), str.rjust)


def only_answer(truth, predictions):
    """Return the single prediction for all examples; None if they differ or all true labels agree.

    Numbers count as one if their range is below a hundredth of that of the true values; the
    midpoint of the range is returned.
    """
    if not len(predictions) or len(set(truth)) == 1:
        return None
    if isinstance(predictions[0], float):
        lowest, highest = min(predictions), max(predictions)
        alike = highest - lowest < 0.01 * (max(truth) - min(truth))
        return (lowest + highest) / 2 if alike else None
    return predictions[0] if len(set(predictions)) == 1 else None
