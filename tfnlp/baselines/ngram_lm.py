"""A language model of n-gram counts, smoothed by Kneser and Ney's method."""

import collections
import dataclasses
import math
from typing import NamedTuple

import numpy as np

from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.settings import Settings, setting

# What stands before a text, what ends it, and any token outside of the vocabulary.
START, END, UNKNOWN = "<s>", "</s>", "<unk>"
# Discounts of counts 1, 2, and 3 or more where they cannot be estimated, as in KenLM.
FALLBACK = (0.5, 1.0, 1.5)


@dataclasses.dataclass(frozen=True)
class NgramSettings(Settings):
    """Settings of an `NgramModel`.

    Raises:
        InputError: for a setting out of its bounds.
    """

    order: int = setting(3, "Tokens of the longest n-grams.", low=1)
    min_count: int = setting(1, "Occurrences of a token at least; others are <unk>.", low=1)


class Continuations(NamedTuple):
    """Counts of the tokens that follow a context.

    Args:
        counts: {token: count}.
        total: their sum.
        backoff: the share of the probability that is left to the shorter context.
    """

    counts: dict
    total: int
    backoff: float


class NgramModel:
    """Counts of n-grams as a language model, with interpolated Kneser-Ney smoothing.

    Chen & Goodman 1999, 'An empirical study of smoothing techniques for language modeling',
    sections 2.7 and 3: the longest n-grams have their counts c, shorter ones the number of
    different tokens before them (Kneser & Ney 1995), and

        p(w | h) = (c(h w) - D(c(h w))) / c(h) + gamma(h) p(w | h'),

    where h' is h without its first token, gamma(h) makes the sum 1, and 1 / V ends the recursion.
    Each order has three discounts D, for counts of 1, 2, and 3 or more.

    Args:
        texts: an iterable of lists of tokens, each after `order - 1` times "<s>" and before
            "</s>".
        settings: an `NgramSettings`; the defaults where None.
        vocabulary: the tokens to predict, a list; those of the texts where None.
        discounts: (order, 3), from the shortest n-grams on; estimated where None (section 3), or
            0.5, 1 and 1.5 for an order with too few n-grams.

    Attributes:
        tokens: the V tokens that are predicted, "<unk>" and "</s>" among them.

    Raises:
        InputError: if there is no token that occurs `min_count` times.
    """

    def __init__(self, texts, settings=None, vocabulary=None, discounts=None):
        settings = settings or NgramSettings()
        self.order, texts = settings.order, [list(text) for text in texts]
        counts = collections.Counter(token for text in texts for token in text)
        kept = [token for token, count in counts.most_common() if count >= settings.min_count]
        if not kept:
            raise InputError(
                f"No token occurs min_count={settings.min_count} times; give more text or a lower "
                "number."
            )
        self.tokens = list(dict.fromkeys([*(vocabulary or kept), UNKNOWN, END]))
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        counts = [self._count(progress_bar(texts, desc="counting", unit="text", delay=5))]
        while len(counts) < self.order:  # from the longest n-grams to the shortest
            counts.append(_count_different(counts[-1]))
        counts.reverse()
        if discounts is None:
            discounts = [estimate_discounts(each) for each in counts]
        self.discounts = np.asarray(discounts, "float64")
        # {context: Continuations} by the length of the context.
        self._orders = [
            {context: _continuations(row, each) for context, row in table.items()}
            for table, each in zip(counts, self.discounts, strict=True)
        ]

    def _count(self, texts):
        """Count the longest n-grams, as {context: {token: count}}."""
        table = collections.defaultdict(collections.Counter)
        for text in texts:
            for context, token in self._ngrams(text):
                table[context][token] += 1
        return table

    def _ngrams(self, text):
        """Yield the context, a tuple of `order - 1` tokens, and the token at each place."""
        size = self.order - 1
        padded = [START] * size + [*map(self.known, text), END]
        for i in range(size, len(padded)):
            yield tuple(padded[i - size : i]), padded[i]

    def known(self, token):
        """Return a token of the vocabulary, or "<unk>"."""
        return token if token in self._ids else UNKNOWN

    def probability(self, token, context):
        """Return the probability of a token after others, all of the vocabulary.

        Args:
            token: a string; "</s>" ends a text.
            context: a tuple of the `order - 1` tokens before it, or fewer; "<s>" begins a text.
        """
        probability = 1 / len(self.tokens)
        for discounts, row in self._rows(context):
            count = row.counts.get(token, 0)
            share = (count - discounts[min(count, 3) - 1]) / row.total if count else 0.0
            probability = share + row.backoff * probability
        return probability

    def probabilities(self, text):
        """Return the probability of each token after all before it, (V,) in order of `tokens`.

        Args:
            text: the tokens before, a list; a text begins with the first.
        """
        padded = [START] * self.order + [*map(self.known, text)]
        probabilities = np.full(len(self.tokens), 1 / len(self.tokens))
        for discounts, row in self._rows(tuple(padded[len(padded) - self.order + 1 :])):
            counts = np.array([*row.counts.values()])
            probabilities *= row.backoff
            ids = [self._ids[token] for token in row.counts]
            probabilities[ids] += (counts - discounts[np.minimum(counts, 3) - 1]) / row.total
        return probabilities

    def next_tokens(self, text, k=5):
        """Return the `k` most probable tokens after a list of tokens, as (token, probability)."""
        probabilities = self.probabilities(text)
        best = np.argsort(-probabilities, kind="stable")[:k]
        return [(self.tokens[i], float(probabilities[i])) for i in best]

    def log_likelihood(self, text, start=0, stop=None):
        """Return the sum of the log-probabilities of a text's tokens and its end, in nats.

        Args:
            text: a list of tokens.
            start, stop: the places that count, all if not given; the end is the last.
        """
        ngrams = list(self._ngrams(text))[start:stop]
        return sum(math.log(self.probability(token, context)) for context, token in ngrams)

    def _rows(self, context):
        """Yield the discounts and the `Continuations` of each context, the shortest first."""
        for length, (discounts, table) in enumerate(
            zip(self.discounts, self._orders, strict=True)
        ):
            row = table.get(context[len(context) - length :]) if length <= len(context) else None
            if row is None:  # a longer context was not seen either
                return
            yield discounts, row


def _count_different(table):
    """Count the different tokens before each n-gram that is one shorter, as {context: counts}."""
    shorter = collections.defaultdict(collections.Counter)
    for context, row in table.items():
        shorter[context[1:]].update(row.keys())
    return shorter


def estimate_discounts(table):
    """Return the discounts of counts 1, 2, and 3 or more (Chen & Goodman 1999, section 3).

    Args:
        table: {context: {token: count}}.
    """
    counts = collections.Counter(count for row in table.values() for count in row.values())
    one, two, three, four = (counts[i] for i in (1, 2, 3, 4))
    if not (one and two and three):
        return FALLBACK
    share = one / (one + 2 * two)
    pairs = ((1, two / one), (2, three / two), (3, four / three))
    discounts = tuple(i - (i + 1) * share * ratio for i, ratio in pairs)
    # A discount of 0 would leave unseen tokens no probability after frequent ones alone.
    return discounts if min(discounts) > 0 else FALLBACK


def _continuations(counts, discounts):
    total = sum(counts.values())
    dropped = sum(discounts[min(count, 3) - 1] for count in counts.values())
    return Continuations(dict(counts), total, dropped / total)


def evaluate_ngrams(model, texts, split):
    """Measure how well a model predicts texts.

    Args:
        model: an `NgramModel`.
        texts: an iterable of strings.
        split: a function from a text to its tokens.

    Returns:
        A dict: `texts`, `characters` and `tokens` with an end of each text, the share of unknown
        tokens, `cross_entropy` in nats a token, `perplexity` and `bits_per_character`.

    Raises:
        InputError: if there is no text.
    """
    count = characters = tokens = unknown = 0
    total = 0.0
    for text in progress_bar(texts, desc="reading", unit="text", delay=5):
        split_text = split(text)
        count += 1
        characters += len(text) + 1
        tokens += len(split_text) + 1
        unknown += sum(model.known(token) == UNKNOWN for token in split_text)
        total += model.log_likelihood(split_text)
    if not count:
        raise InputError("There is no text to measure; give at least one.")
    return {
        "texts": count,
        "characters": characters,
        "unknown_share": unknown / tokens,
        "tokens": tokens,
        "cross_entropy": -total / tokens,
        "perplexity": math.exp(-total / tokens),
        "bits_per_character": -total / math.log(2) / characters,
    }
