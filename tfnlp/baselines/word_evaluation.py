"""Scores of word vectors: similarity to people's judgements, and analogies."""

import dataclasses

import numpy as np
from scipy.stats import spearmanr

from tfnlp.text.reading.lines import read_lines
from tfnlp.text.reading.readers import as_number, read_columns
from tfnlp.utils.errors import InputError

BATCH = 256


@dataclasses.dataclass(frozen=True)
class WordScore:
    """Score of word vectors on a list of questions.

    Args:
        score: Spearman's correlation, or the share of analogies that are right.
        known: the number of questions all of whose words have vectors; only these count.
        total: the number of questions.
    """

    score: float
    known: int
    total: int


def read_word_pairs(path):
    """Read pairs of words and their similarity from the columns word1, word2 and score.

    Returns:
        A list of (word, word, score).

    Raises:
        InputError: as `read_columns` does, or if a score is no number.
    """
    pairs = []
    for place, row in read_columns(path, ["word1", "word2", "score"]):
        try:
            pairs.append((row["word1"], row["word2"], as_number(row["score"])))
        except ValueError:
            raise InputError(f"{path}, {place}: score {row['score']!r} is no number.") from None
    return pairs


def read_analogies(path):
    """Read analogies: four words on a line, in sections that begin with a line ': name'.

    Returns:
        {section: list of (a, b, c, d)}, where a is to b as c to d.

    Raises:
        InputError: if a line has not four words.
    """
    sections, name = {}, "analogies"
    for number, line in read_lines(path):
        words = line.split()
        if line.startswith(":"):
            name = line[1:].strip()
        elif len(words) == 4:
            sections.setdefault(name, []).append(tuple(words))
        elif words:
            raise InputError(f"{path}, line {number}: expected four words, not {len(words)}.")
    return sections


def score_similarity(vectors, pairs):
    """Compare the cosines of word pairs with people's scores.

    Args:
        vectors: `WordVectors`; a word is looked up as it is, then in lower case.
        pairs: as `read_word_pairs` returns.

    Returns:
        A `WordScore` by Spearman's rank correlation.

    Raises:
        InputError: if fewer than two pairs have vectors.
    """
    spelled = [(_known(vectors, a), _known(vectors, b), score) for a, b, score in pairs]
    known = [row for row in spelled if None not in row]
    if len(known) < 2:
        raise InputError(
            f"{len(known)} of {len(pairs)} pairs have vectors; the list and the vectors must be "
            "of one language and spelling."
        )
    cosines = [vectors.similarity(a, b) for a, b, _ in known]
    score = spearmanr(cosines, [score for *_, score in known]).statistic
    return WordScore(float(score), len(known), len(pairs))


def score_analogies(vectors, questions, multiply=False):
    """Complete analogies; see `WordVectors.analogy`.

    Args:
        vectors: `WordVectors`; a word is looked up as it is, then in lower case.
        questions: a list of (a, b, c, d).
        multiply: whether to take 3CosMul in place of 3CosAdd.

    Returns:
        A `WordScore` by the share of right ones; 0 if no question is known.
    """
    rows = [[_known(vectors, word) for word in question] for question in questions]
    rows = [row for row in rows if None not in row]
    numbers = {word: i for i, word in enumerate(vectors.words)}
    ids = np.array([[numbers[word] for word in row] for row in rows], int).reshape(-1, 4)
    right = 0
    for start in range(0, len(ids), BATCH):
        a, b, c, d = ids[start : start + BATCH].T
        by_word = [vectors.unit @ vectors.unit[x].T for x in (a, b, c)]  # (words, questions) each
        if multiply:
            near_a, near_b, near_c = ((1 + cosines) / 2 for cosines in by_word)
            scores = near_b * near_c / (near_a + 1e-6)
        else:
            scores = by_word[1] + by_word[2] - by_word[0]
        for x in (a, b, c):
            scores[x, np.arange(len(x))] = -np.inf
        right += int((scores.argmax(0) == d).sum())
    return WordScore(right / max(len(ids), 1), len(ids), len(questions))


def pooled_score(scores):
    """Return the `WordScore` of several lists of analogies as one list."""
    scores = list(scores)
    known = sum(score.known for score in scores)
    right = sum(score.score * score.known for score in scores)
    return WordScore(right / max(known, 1), known, sum(score.total for score in scores))


def _known(vectors, word):
    """Return the spelling of a word that has a vector, or None."""
    return next((w for w in (word, word.lower()) if w in vectors), None)
