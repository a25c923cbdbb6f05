"""Prompts of none, one or a few examples, and what makes of likelihoods a choice.

Brown et al. 2020, 'Language Models are Few-Shot Learners', sections 2 and 2.4.
"""

import dataclasses

import numpy as np

from tfnlp.errors import InputError
from tfnlp.text.texts import check_whole

# How likelihoods of completions are made comparable.
NORMALIZATIONS = ("sum", "length", "prior")


@dataclasses.dataclass(frozen=True)
class Template:
    """How an example is written.

    Args:
        pattern: with the slots {text} and, after it, {label}, such as
            "Review: {text}\\nSentiment: {label}".
        separator: what stands between examples.
        instruction: what stands before the first, the task in words; nothing where empty.

    Raises:
        InputError: for a slot that is missing, there twice, or in another order, and for nothing
            between the two, where text and label would run together.
    """

    pattern: str
    separator: str = "\n\n"
    instruction: str = ""

    def __post_init__(self):
        for slot in ("{text}", "{label}"):
            count = self.pattern.count(slot)
            if count != 1:
                held = "lacks the slot" if count == 0 else f"has {count} times the slot"
                raise InputError(
                    f"template={self.pattern!r} {held} {slot}; write it once, as in "
                    "'Review: {text} Sentiment: {label}'."
                )
        if self.pattern.index("{label}") < self.pattern.index("{text}"):
            raise InputError(
                f"template={self.pattern!r} has {{label}} before {{text}}, but a label is written "
                "after its text; turn them round."
            )

        if not self._parts[1]:
            raise InputError(
                f"template={self.pattern!r} has nothing between {{text}} and {{label}}, which run "
                "together; write a space, a line break or a word there."
            )

    @property
    def _parts(self):
        """What stands before the text, between text and label, and after the label."""
        before, rest = self.pattern.split("{text}")
        return (before, *rest.split("{label}"))

    @property
    def answer_context(self):
        """What stands before a label whatever the text: Brown et al.'s "Answer:"."""
        return self._parts[1].strip()

    @property
    def border(self):
        """Return the white space before a label."""
        between = self._parts[1]
        return between[len(between.rstrip()) :]

    def example(self, text, label):
        """An example with its label."""
        before, between, after = self._parts
        return f"{before}{text}{between}{label}{after}"

    def prompt(self, text, shots=()):
        """What the model reads before the label of a text.

        Args:
            text: a string.
            shots: (text, label) pairs, written before it with their labels.

        Returns:
            A string without white space at its end: that belongs to the label, see `completion`.
        """
        before, between, _ = self._parts
        examples = [self.example(*shot) for shot in shots]
        parts = [*([self.instruction] if self.instruction else []), *examples]
        return self.separator.join([*parts, f"{before}{text}{between}"]).rstrip()

    def completion(self, label):
        """A label as it goes on from a prompt, with the white space before it."""
        return self.border + label


def draw_shots(examples, shots, seed, draw):
    """Some examples, in the order in which they are drawn.

    Args:
        examples: how many there are.
        shots: how many to draw, none twice.
        seed, draw: what the draw depends on alone.

    Returns:
        A list of their numbers.

    Raises:
        InputError: for more shots than there are examples, or fewer than none.
    """
    check_whole(shots=shots)
    if not 0 <= shots <= examples:
        raise InputError(
            f"shots={shots} must lie between 0 and {examples}, the examples that there are to "
            "draw from."
        )
    rng = np.random.default_rng([seed, draw])
    return [int(i) for i in rng.choice(examples, shots, replace=False)]


def normalized(likelihoods, lengths, priors):
    """Log-likelihoods of completions, made comparable.

    Args:
        likelihoods: (B, C), each label's after each prompt, summed over tokens.
        lengths: (C,), the tokens of each label.
        priors: (C,), each label's likelihood after the answer context alone.

    Returns:
        {name: (B, C)} with the names of `NORMALIZATIONS`: the sums as they are; over the number
        of tokens; and less the prior, which is the log of P(completion | context) /
        P(completion | answer context).
    """
    return {
        "sum": likelihoods,
        "length": likelihoods / np.asarray(lengths),
        "prior": likelihoods - np.asarray(priors),
    }


def cut_at(text, stop, border=""):
    """A completion up to where it goes on to something else.

    Args:
        text: what was written.
        stop: a string that ends it, such as a line break; nothing where empty.
        border: the white space that a label begins with (`Template.border`), in which nothing
            ends. An answer that ends right after it is empty.

    Returns:
        The text before it, without white space around.
    """
    text = text.removeprefix(border)
    return (text.split(stop)[0] if stop else text).strip()
