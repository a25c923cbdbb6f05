"""The examples that a model got most wrong."""

import numpy as np

COUNT = 10
LONGEST = 300  # characters of a text


def worst_mistakes(task, examples, encodings, outputs):
    """Return the examples with the least probable labels, of those answered wrongly.

    Args:
        task: see `tfnlp.tasks`.
        examples: with labels.
        encodings, outputs: as in `Task.decode`.

    Returns:
        At most `COUNT` rows of strings, the worst first: text, second text if there is one, label,
        prediction, and the probability of the label. A header comes first. It is empty for a task
        without `log_likelihood`, and without mistakes.
    """
    log_p = task.log_likelihood(examples, outputs)
    if log_p is None:
        return []
    columns = [examples.texts, *([examples.pairs] if examples.pairs else [])]
    columns += task.answers(examples, task.decode(examples, encodings, outputs))
    truth, predicted = columns[-2:]
    wrong = [i for i in np.argsort(log_p, kind="stable") if truth[i] != predicted[i]]
    header = ["text", *(["second text"] if examples.pairs else []), "label", "prediction"]
    rows = [
        [*(_short(column[i]) for column in columns), f"{np.exp(log_p[i]):.2g}"]
        for i in wrong[:COUNT]
    ]
    return [[*header, "probability of the label"], *rows] if rows else []


def _short(text):
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
