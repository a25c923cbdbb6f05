"""Zero-, one- and few-shot prompts, and the choice of a label by likelihood.

Brown et al. 2020, 'Language Models are Few-Shot Learners', sections 2 and 2.4.
"""

import dataclasses
import re

import numpy as np

from tfnlp.text.text_arguments import check_whole
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class Template:
    """Prompt template of an example.

    Args:
        pattern: with the slots {text} and, after it, {label}, such as
            "Review: {text}\\nSentiment: {label}".
        separator: the string between examples.
        instruction: the task description before the first example; none where empty.

    Raises:
        InputError: if a slot is missing, repeated or out of order, or nothing separates the two,
            so that text and label would run together.
    """

    pattern: str
    separator: str = "\n\n"
    instruction: str = ""

    def __post_init__(self):
        counts = {self.pattern.count(slot) for slot in ("{text}", "{label}")}
        if counts != {1} or not re.search(r"\{text\}.+\{label\}", self.pattern, re.DOTALL):
            raise InputError(
                f"template={self.pattern!r} must have {{text}} once and then, after a space, line "
                "break or words, {label} once, as in 'Review: {text} Sentiment: {label}'."
            )

    @property
    def _parts(self):
        """Strings before the text, between text and label, and after the label."""
        return re.split(r"\{text\}|\{label\}", self.pattern)

    @property
    def answer_context(self):
        """String before a label regardless of the text: Brown et al.'s "Answer:"."""
        return self._parts[1].strip()

    @property
    def border(self):
        """White space before a label."""
        between = self._parts[1]
        return between[len(between.rstrip()) :]

    def example(self, text, label):
        """Return an example with its label."""
        before, between, after = self._parts
        return f"{before}{text}{between}{label}{after}"

    def prompt(self, text, shots=()):
        """Return the prompt before the label of a text.

        Args:
            text: a string.
            shots: (text, label) pairs, written before it with their labels.

        Returns:
            A string without trailing white space, which belongs to the label; see `completion`.
        """
        before, between, _ = self._parts
        parts = [self.instruction] * bool(self.instruction)
        parts += [self.example(*shot) for shot in shots]
        return self.separator.join([*parts, f"{before}{text}{between}"]).rstrip()

    def completion(self, label):
        """Return a label as the continuation of a prompt, with the white space before it."""
        return self.border + label


def draw_shots(examples, shots, seed, draw):
    """Return the indices of random examples, in the order in which they are drawn.

    Args:
        examples: number of examples.
        shots: number of examples to draw, without replacement.
        seed, draw: seeds of the draw, which depends only on them.

    Returns:
        A list of indices.

    Raises:
        InputError: if there are more shots than examples, or fewer than 0.
    """
    check_whole(shots=shots)
    if not 0 <= shots <= examples:
        raise InputError(
            f"shots={shots} must lie between 0 and {examples}, the number of examples."
        )
    rng = np.random.default_rng([seed, draw])
    return rng.choice(examples, shots, replace=False).tolist()


def normalized(likelihoods, lengths, priors):
    """Return normalised log-likelihoods of completions.

    Args:
        likelihoods: (B, C), each label's after each prompt, summed over tokens.
        lengths: (C,), the tokens of each label.
        priors: (C,), each label's log-likelihood after the answer context alone.

    Returns:
        {name: (B, C)}: "sum", the sums; "length", the sums divided by the number of tokens; and
        "prior", the sums minus the prior, which is the log of P(completion | context) /
        P(completion | answer context).
    """
    return {
        "sum": likelihoods,
        "length": likelihoods / np.asarray(lengths),
        "prior": likelihoods - np.asarray(priors),
    }


def cut_at(text, stop, border=""):
    """Return a completion up to the stop string, without white space around.

    Args:
        text: the generated text.
        stop: a string that ends it, such as a line break; none where empty.
        border: the white space at the beginning of a label (`Template.border`), in which the stop
            string is ignored. An answer that ends right after it is empty.
    """
    text = text.removeprefix(border)
    return (text.split(stop)[0] if stop else text).strip()
