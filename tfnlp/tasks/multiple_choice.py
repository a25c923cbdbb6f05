"""Multiple choice among endings, as in SWAG and CODAH."""

import dataclasses
import re

import numpy as np

from tfnlp.tasks.kinds import CHOOSER
from tfnlp.tasks.task import Task
from tfnlp.text.reading.readers import read_columns, read_header
from tfnlp.utils.errors import InputError


@dataclasses.dataclass
class Choices:
    """Prompts with several endings each.

    Args:
        prompts: a list of strings.
        endings: a list of equally long lists of strings.
        labels: the index of each correct ending, from 0; or None.
    """

    prompts: list
    endings: list
    labels: list | None = None

    def __len__(self):
        return len(self.prompts)


def read_choices(path, prompt_column="prompt", choice_columns=None, label_column="label"):
    """Read prompts, endings and labels from a TSV, CSV, JSON or JSON Lines file.

    Args:
        path: the file.
        prompt_column: the column of the prompt.
        choice_columns: the columns of the endings in order; where None, the columns choice0,
            choice1, ... (or ending0, ..., or from 1 on) in numeric order.
        label_column: the column of the correct ending's index, from 0; None to read no labels.

    Raises:
        InputError: as in `read_columns`; and for fewer than 2 endings, numbered columns with gaps,
            or a label that is not the index of an ending.
    """
    if choice_columns is None:
        choice_columns = _numbered_columns(path, read_header(path))
    if len(set(choice_columns)) < max(2, len(choice_columns)):
        raise InputError(
            f"{path}: the columns of endings are {', '.join(choice_columns) or 'none'}; name at "
            "least 2 by `choice_columns`, each once, or call them choice0, choice1, ..."
        )
    columns = [prompt_column, *choice_columns, *([label_column] if label_column else [])]
    prompts, endings, labels = [], [], []
    for place, row in read_columns(path, columns):
        prompts.append(row[prompt_column])
        endings.append([row[c] for c in choice_columns])
        if label_column:
            label = row[label_column].strip()
            if not re.fullmatch("[0-9]+", label) or int(label) >= len(choice_columns):
                raise InputError(
                    f"{path}, {place}: {label_column} {label!r} is not the number of an "
                    f"ending, 0 to {len(choice_columns) - 1}."
                )
            labels.append(int(label))
    return Choices(prompts, endings, labels if label_column else None)


def _numbered_columns(path, header):
    """Return the columns choice0, choice1, ... or ending0, ..., in numeric order."""
    matches = [m for m in (re.fullmatch("(choice|ending)([0-9]+)", c) for c in header) if m]
    matches.sort(key=lambda match: int(match[2]))
    names, numbers = [m[0] for m in matches], [int(m[2]) for m in matches]
    # COPA's columns count from 1, but its labels from 0.
    first = 1 if numbers[:1] == [1] else 0
    gapless = numbers == list(range(first, first + len(numbers)))
    if len({m[1] for m in matches}) > 1 or not gapless:
        raise InputError(
            f"{path} has the columns {', '.join(names)}; number the endings one by one under one "
            "name (choice0, choice1, ...), or name them in order by `choice_columns`."
        )
    return names


class MultipleChoice(Task):
    """Multiple choice: select the ending of a prompt (Devlin et al. 2019, section 4.4)."""

    kind = CHOOSER

    def encode(self, tokenizer, examples, max_length):
        count = len(examples.endings[0])
        for i, group in enumerate(examples.endings):
            if len(group) != count:
                raise InputError(
                    f"endings[{i}] has {len(group)} endings and endings[0] {count}; give each "
                    "prompt the same number."
                )
        prompts = [prompt for prompt in examples.prompts for _ in range(count)]
        endings = [ending for group in examples.endings for ending in group]
        flat = tokenizer.encode(prompts, endings, max_length)
        return dataclasses.replace(flat, choices=count), examples.labels

    def decode(self, examples, encodings, outputs):
        return np.stack(outputs["logits"]).argmax(1).tolist()

    def score_predictions(self, examples, predictions):
        return {"accuracy": float(np.mean(np.equal(examples.labels, predictions)))}

    def answers(self, examples, predictions):
        return list(examples.labels), predictions

    def baseline(self, examples):
        majority = np.bincount(examples.labels).argmax()
        return self.score_predictions(examples, np.full(len(examples.labels), majority))
