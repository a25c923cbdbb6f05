import numpy as np
import pytest
from scipy.stats import spearmanr

from tfnlp.baselines import (
    WordVectors,
    pooled_score,
    read_analogies,
    read_word_pairs,
    score_analogies,
    score_similarity,
)
from tfnlp.baselines.word_evaluation import WordScore
from tfnlp.utils.errors import InputError

WORDS = ["athens", "greece", "oslo", "norway", "rome", "italy"]
RNG = np.random.default_rng(0)
VECTORS = WordVectors(WORDS, RNG.normal(size=(6, 4)))


def test_similarity_leaves_out_and_counts_unknown_words(tmp_path):
    path = tmp_path / "pairs.tsv"
    rows = ["Athens\tgreece\t9", "oslo\trome\t5", "rome\titaly\t7", "oslo\tyak\t1"]
    path.write_text("\n".join(["word1\tword2\tscore", *rows]) + "\n")
    result = score_similarity(VECTORS, read_word_pairs(path))
    cosines = [VECTORS.similarity(*p) for p in (WORDS[:2], ("oslo", "rome"), WORDS[4:])]
    assert result.score == pytest.approx(spearmanr(cosines, [9, 5, 7]).statistic)
    assert (result.known, result.total) == (3, 4)
    with pytest.raises(InputError, match="0 of 1 pairs have vectors"):
        score_similarity(VECTORS, [("yak", "gnu", 3.0)])
    path.write_text("word1\tword2\tscore\na\tb\t1_0\n")
    with pytest.raises(InputError, match="score '1_0' is no number"):
        read_word_pairs(path)


@pytest.mark.parametrize("multiply", [False, True])
def test_analogies_are_those_of_each_word_by_itself(tmp_path, multiply):
    path = tmp_path / "questions.txt"
    path.write_text(
        ": capitals\nAthens Greece Oslo Norway\nRome Italy Oslo Norway\n"
        ": others\nyak gnu oslo rome\n"
    )
    sections = read_analogies(path)
    assert sections["capitals"][0] == ("Athens", "Greece", "Oslo", "Norway")
    assert sections["others"] == [("yak", "gnu", "oslo", "rome")]
    result = score_analogies(VECTORS, sections["capitals"], multiply)
    right = [
        VECTORS.analogy([b.lower(), c.lower()], [a.lower()], 1, multiply)[0][0] == d.lower()
        for a, b, c, d in sections["capitals"]
    ]
    assert result.score == np.mean(right) and (result.known, result.total) == (2, 2)
    assert score_analogies(VECTORS, sections["others"], multiply).known == 0
    # Vectors in which the analogy holds exactly.
    exact = np.eye(4)[[0, 1, 2]].tolist() + [[-1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, -1]]
    held = WordVectors(WORDS, exact)
    assert score_analogies(held, sections["capitals"][:1], multiply).score == 1
    path.write_text("a b c\n")
    with pytest.raises(InputError, match="line 1: expected four words, not 3"):
        read_analogies(path)


def test_scores_of_sections_are_pooled_by_their_known_questions():
    scores = [WordScore(0.5, 4, 9), WordScore(1.0, 1, 1), WordScore(0.0, 0, 7)]
    assert pooled_score(scores) == WordScore(3 / 5, 5, 17)
