"""Inputs of a pipeline: texts, their second texts, and their gold answers."""

import dataclasses
import itertools
import random

from tfnlp.utils.settings import setting


@dataclasses.dataclass
class Inputs:
    """Inputs of a pipeline.

    Args:
        texts: a list of texts; for a tagger texts or lists of words, for an answerer the
            questions, for a chooser the prompts.
        second_texts: the second text of each, the context, or a list of endings; or None.
        gold: the gold label, tags, answers, number or index of the ending of each, from the file;
            or None.
        ids: the names of questions, or None.
    """

    texts: list
    second_texts: list | None = None
    gold: list | None = None
    ids: list | None = None

    def flat_texts(self):
        """Return the model's inputs as a list of strings, or of (text, second text) pairs.

        Words are joined with spaces, and a prompt is paired with each of its endings.
        """
        if self.second_texts is None:
            # Even the first word gets a space before it, since byte-level BPE reads words so.
            return [x if isinstance(x, str) else "".join(f" {w}" for w in x) for x in self.texts]
        return [
            (text, second)
            for text, group in zip(self.texts, self.second_texts, strict=True)
            for second in ([group] if isinstance(group, str) else group)
        ]

    def take(self, indices):
        """Return the inputs at some indices, in their order."""
        columns = {
            name: None if column is None else [column[i] for i in indices]
            for name, column in vars(self).items()
        }
        return Inputs(**columns)

    def draw(self, count):
        """Draw at most `count` inputs at random, since files may be sorted by label or length."""
        total = len(self.texts)
        return self.take(sorted(random.Random(0).sample(range(total), min(count, total))))

    def each_text(self):
        """Return all texts singly, in a list, without duplicates of second texts."""
        flat = self.flat_texts()
        if self.second_texts is None:
            return flat
        texts, second_texts = zip(*flat, strict=True)
        unrepeated = itertools.groupby(texts)  # a prompt is paired with each of its endings
        return [*(text for text, _ in unrepeated), *dict.fromkeys(second_texts)]


@dataclasses.dataclass
class Columns:
    """Columns of a file of inputs; where None, those that the task's recipe expects."""

    text: str | None = setting(
        None, "Column of the text; that of the task's recipe if not given.", flag="text_column"
    )
    pair: str | None = setting(None, "Column of the second text, for pairs.", flag="pair_column")
    label: str | None = setting(
        None,
        "Column of the label, labels or number; label, labels or score if not given; empty for "
        "none.",
        flag="label_column",
    )
    question: str | None = setting(
        None, "Column of the question; question if not given.", flag="question_column"
    )
    prompt: str | None = setting(
        None,
        "Column of the prompt in multiple choice; prompt if not given.",
        flag="prompt_column",
    )
    choices: tuple[str, ...] | None = setting(
        None,
        "Columns of the choices; choice0, choice1, ... if not given.",
        flag="choice_columns",
    )
    tagged: bool | None = setting(
        None, "Whether lines of a file have a word and its tag; detected if not given."
    )
