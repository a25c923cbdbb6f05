"""Correction of spelling by a noisy channel and an n-gram language model."""

import collections
import dataclasses
import itertools
import math
import unicodedata

from tfnlp.baselines.ngram_lm import END, UNKNOWN
from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class SpellingSettings(Settings):
    """Settings of a `SpellingCorrector`.

    Raises:
        InputError: for a setting out of its bounds.
    """

    max_edits: int = setting(2, "Letters to add, drop, change or swap in a word at most.", low=0)
    edit_probability: float = setting(
        1e-4, "Probability of one such edit, by which a word must be unlikely.", above=0, below=1
    )


class SpellingCorrector:
    """Correction of each word to the one most probable among its neighbours.

    The noisy channel (Kernighan, Church & Gale 1990; Mays, Damerau & Mercer 1991): of the words w
    of the vocabulary that are `max_edits` edits away from the written x at most, the one that
    maximises p(x | w) p(w in the text), with p(x | w) = `edit_probability` ** edits. An edit
    (Damerau 1964) adds, drops or changes a letter or swaps two; letters of Hangul are jamo.

    Args:
        model: an `NgramModel` of words.
        settings: a `SpellingSettings`; the defaults where None.
    """

    def __init__(self, model, settings=None):
        self.model, self.settings = model, settings or SpellingSettings()
        # The words by what is left of them without some letters: two words that are n edits apart
        # have a rest in common without n letters each.
        self._by_rest = collections.defaultdict(list)
        for word in model.tokens:
            if word not in (UNKNOWN, END):
                for rest in _rests(letters_of(word), self.settings.max_edits):
                    self._by_rest[rest].append(word)

    def candidates(self, word):
        """Return the words of the vocabulary nearby, as {word: edits}."""
        letters, most = letters_of(word), self.settings.max_edits
        near = {w for rest in _rests(letters, most) for w in self._by_rest.get(rest, ())}
        edits = {w: edit_distance(letters, letters_of(w)) for w in near}
        return {w: distance for w, distance in edits.items() if distance <= most}

    def correct(self, words):
        """Return the words of a text, a list, with each corrected in its turn from the left.

        A word stays as it is if it is the most probable, or if none of the vocabulary is nearby.
        """
        words = list(words)
        for place, word in enumerate(words):
            near = self.candidates(word)
            if near:
                words[place] = max(near, key=lambda w: self._score(words, place, w, near[w]))
        return words

    def _score(self, words, place, word, edits):
        """Return the log-probability of a text with a word in a place, up to a constant."""
        changed = [*words[:place], word, *words[place + 1 :]]
        # All n-grams that hold the word.
        likelihood = self.model.log_likelihood(changed, place, place + self.model.order)
        return likelihood + edits * math.log(self.settings.edit_probability)


def letters_of(word):
    """Return a word with its Hangul syllables as jamo, and accents apart from their letters."""
    return unicodedata.normalize("NFD", word)


def _rests(letters, most):
    """Return what is left of a string without up to `most` of its letters, a set."""
    lengths = range(max(len(letters) - most, 0), len(letters) + 1)
    return {"".join(rest) for n in lengths for rest in itertools.combinations(letters, n)}


def edit_distance(first, second):
    """Return how many letters to add, drop, change or swap with the next make two strings equal.

    Each letter is edited once (the optimal string alignment of Damerau 1964).
    """
    before, row = [], range(len(second) + 1)
    for i, a in enumerate(first, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(second, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
            if i > 1 and j > 1 and (a, first[i - 2]) == (second[j - 2], b):
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]
