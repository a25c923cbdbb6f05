"""Which labels are said where others are right."""


def confusion_matrix(right, answers, labels):
    """Count the answers to each right label.

    Args:
        right: the right label of each example, a list of strings.
        answers: what was said of each, likewise.
        labels: all of them, in the order of rows and columns.

    Returns:
        {"labels": list of C strings, "counts": C lists of C numbers}, row i of the examples whose
        right label is i, by what was said of them.
    """
    counts = {label: dict.fromkeys(labels, 0) for label in labels}
    for label, answer in zip(right, answers, strict=True):
        counts[label][answer] += 1
    return {"labels": [*labels], "counts": [[*row.values()] for row in counts.values()]}


def matrix_rows(matrix):
    """Return a matrix of `confusion_matrix` as rows of texts, a header first."""
    rows = [["right \\ said", *matrix["labels"]]]
    for label, counts in zip(matrix["labels"], matrix["counts"], strict=True):
        rows.append([label, *map(str, counts)])
    return rows


def confusion_table(matrix):
    """Return the lines of a matrix of `confusion_matrix` as a text table."""
    rows = matrix_rows(matrix)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.rjust, row, widths)) for row in rows]


def only_answer(right, answers):
    """Return the label that all answers are where not all right ones are alike; None elsewhere.

    Numbers are alike whose range is below a hundredth of that of the right ones; their middle is
    returned then.
    """
    if not len(answers) or len(set(right)) == 1:
        return None
    if isinstance(answers[0], float):
        lowest, highest = min(answers), max(answers)
        alike = highest - lowest < 0.01 * (max(right) - min(right))
        return (lowest + highest) / 2 if alike else None
    return answers[0] if len(set(answers)) == 1 else None
