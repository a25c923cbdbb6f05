"""Choice of the next token of one text in NumPy: constraints, cuts of sampling, draws.

`constraints.py` and `sampling.py` have the same for batches, in TensorFlow.
"""

import math

import numpy as np

from tfnlp.generation.generation_settings import NEVER


class TextRules:
    """`Constraints` applied to the texts of one prompt.

    Args:
        settings: a `SearchSettings`.
        prompt: ids that count as written, a list.
    """

    def __init__(self, settings, prompt):
        self.constraints, self.steps, self.prompt = settings.constraints, settings.steps, prompt
        self._ends = list(settings.ends)
        rows = {*self.constraints.forbidden}
        self._single = list({row[0] for row in rows if len(row) == 1} - {*self._ends})
        self._sequences = [list(row) for row in rows if len(row) > 1]

    @property
    def normalize(self):
        """True if scores are log-probabilities after the rules, whatever their sum is before."""
        return self.constraints.renormalize and self.constraints.repetition_penalty == 1

    def __call__(self, scores, texts):
        """Return the constrained scores (K, V) of the next token of K texts, lists of ids."""
        scores = scores.copy()
        for row, ids in zip(scores, texts, strict=True):
            self._constrain(row, ids)
        if self.constraints.renormalize:
            # Where no token is left, a softmax has no value.
            some = (scores > NEVER).any(axis=-1)
            scores[some] = log_softmax(scores[some])
        return scores

    def _constrain(self, scores, ids):
        """Change the scores (V,) of the next token of a text."""
        rules, written = self.constraints, self.prompt + ids
        if rules.repetition_penalty != 1:
            present = list({*written})
            some, penalty = scores[present], np.float32(rules.repetition_penalty)
            scores[present] = np.where(some < 0, some * penalty, some / penalty)
        if rules.no_repeat_ngram_size:
            scores[ends_of_repeated(written, rules.no_repeat_ngram_size)] = NEVER
        scores[self._single] = NEVER
        for *begun, last in self._sequences:
            if written[-len(begun) :] == begun:
                scores[last] = NEVER
        if len(ids) < rules.min_new_tokens:
            scores[self._ends] = NEVER
        for token, place in ((rules.forced_first, 0), (rules.forced_last, self.steps - 1)):
            if token is not None and len(ids) == place:
                scores[:] = NEVER
                scores[token] = 0


def ends_of_repeated(ids, size):
    """Return the tokens that would complete a second n-gram of this size in a text, a list."""
    last = ids[max(len(ids) - size + 1, 0) :]
    places = range(size - 1, len(ids))
    return [ids[place] for place in places if ids[place - size + 1 : place] == last]


def filtered(scores, sample):
    """Return the logits (V,) to sample from, as `sampling.filtered`."""
    scores = scores / np.float32(sample.temperature)
    if 0 < sample.top_k < len(scores):
        scores[scores < np.partition(scores, -sample.top_k)[-sample.top_k]] = NEVER
    if sample.top_p < 1:
        least = _least_of_nucleus(scores[scores > NEVER], sample.top_p)
        scores[scores < least] = NEVER
    if sample.min_p > 0:
        scores[scores < scores.max() + math.log(sample.min_p)] = NEVER
    return scores


def _least_of_nucleus(scores, top_p):
    """Return the least score of the smallest top-p set of logits (n,), all finite."""
    highest, size = scores.max(), 64
    needed = top_p * np.exp(scores - highest).sum(dtype="float64")
    while True:
        # The set is mostly small, so that sorting the best scores alone saves most of the time.
        size = min(8 * size, len(scores))
        best = np.sort(np.partition(scores, -size)[-size:])[::-1]
        sums = np.cumsum(np.exp(best - highest), dtype="float64")
        if sums[-1] >= needed or size == len(scores):
            return best[min(np.searchsorted(sums, needed), size - 1)]


def draw(scores, uniform):
    """Return the sampled token of logits (V,) by a number from [0, 1), as `sampling.draw`."""
    places = np.flatnonzero(scores > NEVER)
    sums = np.cumsum(np.exp(scores[places] - scores.max()), dtype="float64")
    return int(places[np.searchsorted(sums, uniform * sums[-1], side="right")])


def log_softmax(logits):
    """Compute log-probabilities (K, V) of logits (K, V)."""
    x = logits - logits.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
