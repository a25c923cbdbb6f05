"""Settings of text generation: search strategies and constraints."""

import dataclasses

import numpy as np

from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, check_at_least, check_whole, setting

NORMALIZATIONS = ("length", "gnmt")
# Score of an absent text, below any sum of log-probabilities, and of a token that may not come.
WORST, NEVER = -1e9, -np.inf


@dataclasses.dataclass(frozen=True)
class Greedy:
    """Greedy search: the most probable token at each position."""


@dataclasses.dataclass(frozen=True)
class Beam(Settings):
    """Beam search: the best of several texts that are generated in parallel.

    A text's score is the sum of its tokens' log-probabilities over a norm of its length t, the
    prompt not counted and the end token counted: t ** length_penalty, or ((5 + t) / 6) **
    length_penalty (Wu et al. 2016, eq. 14). Texts are kept as in `transformers`.

    A prompt's search may end before the greatest length, by `early_stopping`. True: once K texts
    have ended. False: once the best open text, ended now, would not be among the best K. "never":
    once it could not be at any length.

    Raises:
        InputError: if a number is out of its range.
    """

    beams: int = setting(4, "Beams of the search; 1: greedy search.", low=1)
    length_penalty: float = setting(  # beyond its bounds scores are all 0 or infinite
        1.0, "Exponent of a text's length; 0: none.", low=-10, high=10
    )
    normalization: str = setting(
        "length",
        "Norm of a text of t tokens: t, or (5 + t) / 6 of Wu et al. (gnmt).",
        choices=NORMALIZATIONS,
    )
    early_stopping: bool | str = False
    best: int = setting(
        1, "Texts per prompt, the best first; fewer where constraints leave fewer."
    )

    def __post_init__(self):
        super().__post_init__()
        if not 1 <= self.best <= self.beams:
            raise InputError(
                f"best={self.best} must be from 1 to beams={self.beams}, the texts that there are."
            )
        if not (isinstance(self.early_stopping, bool) or self.early_stopping == "never"):
            raise InputError(
                f"early_stopping={self.early_stopping!r} must be True, False or 'never'."
            )

    def norm(self, length):
        """Return the divisor of the score of a text of `length` tokens."""
        if self.normalization == "gnmt":
            length = (5 + length) / 6
        return length**self.length_penalty

    def is_text(self, score, length):
        """Return whether a score belongs to an allowed text of `length` tokens."""
        return length > 0 and score * self.norm(length) > WORST / 2


@dataclasses.dataclass(frozen=True)
class Sample(Settings):
    """Tokens sampled from the model's distribution after temperature, top_k, top_p and min_p.

    They apply in this order, as in `transformers`. Top_p is nucleus sampling (Holtzman et al.
    2020, section 3.1), min_p that of Nguyen et al. 2025 ('Turning Up the Heat', section 3).
    Samples depend only on the seed, the prompt's number and the text's number.

    Raises:
        InputError: if a number is out of its range.
    """

    temperature: float = setting(1.0, "Divisor of the logits in sampling.", above=0)
    top_k: int = setting(0, "Most probable tokens to sample from; 0: all.", low=0)
    top_p: float = setting(
        1.0, "Probability mass of the most probable tokens to sample from.", above=0, high=1
    )
    min_p: float = setting(
        0.0, "Least probability of a token, as a share of the most probable one's.", low=0, high=1
    )
    seed: int = setting(0, "Seed of the samples.", low=0)
    texts: int = setting(1, "Texts per prompt.", low=1)

    def draws(self, number, copy, steps):
        """Return the numbers from [0, 1) of text `copy` of prompt `number`, (steps,) float32."""
        return np.random.default_rng([self.seed, number, copy]).random(steps, "float32")


@dataclasses.dataclass(frozen=True)
class Constraints(Settings):
    """Constraints on generated texts, in the order in which they change scores.

    Args:
        repetition_penalty: factor of the scores of these tokens that are negative (Keskar et al.
            2019, 'CTRL', section 4.1).
        no_repeat_ngram_size: n, such that no n-gram occurs twice in prompt and text together.
        min_new_tokens: tokens before the end token is allowed.
        forbidden: ids that may not be generated, and tuples of ids that may not be in a row.
        forced_first: the first id of a text, or None.
        forced_last: the id at the greatest length, or None.
        renormalize: whether the remaining tokens are scaled to the total probability 1, so that a
            beam's score does not fall with the excluded mass.

    Raises:
        InputError: if a number is out of its range.
    """

    repetition_penalty: float = setting(
        1.0, "Divisor of the scores of repeated tokens; 1: none.", above=0
    )
    no_repeat_ngram_size: int = setting(
        0, "Length of sequences that may not repeat; 0: none.", low=0
    )
    forbidden: tuple = ()
    min_new_tokens: int = setting(0, "Fewest tokens of a text.", low=0)
    forced_first: int | None = None
    forced_last: int | None = None
    renormalize: bool = False

    def __post_init__(self):
        super().__post_init__()
        rows = tuple(
            tuple(row) if isinstance(row, tuple | list) else (row,) for row in self.forbidden
        )
        for i in (i for row in rows for i in row):
            check_whole(forbidden=i)
        if () in rows:
            raise InputError("forbidden holds an empty row of ids; leave it out.")
        object.__setattr__(self, "forbidden", rows)

    def check(self, vocabulary_size, max_new_tokens):
        """Check ids against a vocabulary, and lengths for contradictions.

        Raises:
            InputError: if an id is outside the vocabulary, all ids are forbidden, or lengths
                contradict.
        """
        forced = [i for i in (self.forced_first, self.forced_last) if i is not None]
        for i in (*forced, *(i for row in self.forbidden for i in row)):
            if not 0 <= i < vocabulary_size:
                raise InputError(
                    f"The constraints name the id {i}, but the vocabulary has ids from 0 to "
                    f"{vocabulary_size - 1}."
                )
        if len({row for row in self.forbidden if len(row) == 1}) == vocabulary_size:
            raise InputError(
                f"forbidden has all {vocabulary_size} ids of the vocabulary, so that there is "
                "nothing to write; leave some out."
            )
        if self.min_new_tokens > max_new_tokens:
            raise InputError(
                f"min_new_tokens={self.min_new_tokens} is more than "
                f"max_new_tokens={max_new_tokens}; make one of them fit."
            )


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """Settings of a search.

    Args:
        strategy: `Greedy`, `Sample` or `Beam`.
        constraints: a `Constraints`.
        steps: the maximum number of new tokens.
        ends: the ids of the tokens that end a text, a tuple.
        pad: the id after the end token.
        stop_strings: strings that end a text, of any strategy but `Beam`.
    """

    strategy: object
    constraints: Constraints
    steps: int
    ends: tuple
    pad: int
    stop_strings: tuple = ()

    def __post_init__(self):
        stop_strings = as_texts(self.stop_strings, "stop_strings")
        object.__setattr__(self, "stop_strings", tuple(stop_strings))

    @property
    def candidates(self):
        """The continuations that a step of a beam search compares, K of which are open."""
        return max(2, 1 + len(self.ends)) * self.strategy.beams

    def check(self, vocabulary_size):
        """Check the settings against each other and a vocabulary.

        Raises:
            InputError: if they contradict each other, or a stop string is none.
        """
        check_at_least(1, max_new_tokens=self.steps)
        self.constraints.check(vocabulary_size, self.steps)
        if "" in self.stop_strings:
            raise InputError(
                "stop_strings holds an empty string, which is everywhere; leave it out."
            )
        if not isinstance(self.strategy, Beam):
            return
        if self.candidates > vocabulary_size:
            raise InputError(
                f"beams={self.strategy.beams} compare {self.candidates} tokens, more than the "
                f"{vocabulary_size} of the vocabulary; give fewer."
            )
        if self.stop_strings:
            raise InputError(
                "stop_strings are for greedy search and sampling; leave them out, or give another "
                "search."
            )


@dataclasses.dataclass(frozen=True)
class Writing(Settings):
    """Arguments of a `Generator`: how much it writes at a time, and the end of a text."""

    max_new_tokens: int = setting(64, "Most tokens to generate.", low=1)
    batch_size: int = setting(16, "Prompts in a batch.", low=1)
    end_token: str | tuple | None = setting(
        None, "Token that ends a text; the separator of documents if not given."
    )
    stop_strings: tuple = ()


@dataclasses.dataclass(frozen=True)
class Shots(Settings):
    """Examples in few-shot prompts.

    Raises:
        InputError: if a number is out of its range.
    """

    shots: tuple[int, ...] = setting((0,), "Numbers of examples in a prompt, such as 0,1,4.")
    draws: int = setting(1, "Random draws of the examples, for each number of `shots`.", low=1)
    seed: int = setting(0, "Seed of the draws.", low=0)

    def __post_init__(self):
        super().__post_init__()
        for shots in self.shots:
            check_at_least(0, shots=shots)
