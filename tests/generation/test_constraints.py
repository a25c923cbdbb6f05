import numpy as np
import pytest
import tensorflow as tf

from tfnlp.generation import Beam, Constraints, Greedy, Sample
from tfnlp.generation.constraints import Rules
from tfnlp.generation.generation_settings import SearchSettings
from tfnlp.utils.errors import InputError

# Two prompts, the first padded by two, and two texts of each with three of four tokens written.
PROMPT = np.array([[9, 9, 1, 2], [1, 2, 3, 1]], "int32")
MASK = np.array([[0, 0, 1, 1], [1, 1, 1, 1]], "int32")
TOKENS = np.array([[[3, 1, 2, 0], [4, 4, 4, 0]], [[2, 3, 1, 0], [5, 6, 1, 0]]], "int32")
END = 8


def scores_by(constraints, number=3, tokens=TOKENS):
    scores = np.tile(np.linspace(-1, 1.25, 10, dtype="float32"), (2, 2, 1))
    settings = SearchSettings(Greedy(), constraints, steps=4, ends=(END,), pad=0)
    rules = Rules(settings, tf.constant(PROMPT), tf.constant(MASK), beams=2)
    return scores, rules(tf.constant(scores), tf.constant(tokens), number).numpy()


def banned(constraints, **kwargs):
    """The tokens that may not be, for each text."""
    _, found = scores_by(constraints, **kwargs)
    return [[np.flatnonzero(np.isneginf(row)).tolist() for row in rows] for rows in found]


def test_no_ngram_occurs_twice():
    assert banned(Constraints(no_repeat_ngram_size=3)) == [[[3], [4]], [[2], []]]
    # In prompt and text together; padding is no token.
    assert banned(Constraints(no_repeat_ngram_size=2)) == [[[3], [4]], [[2], [2, 5]]]
    assert banned(Constraints(no_repeat_ngram_size=1))[0] == [[1, 2, 3], [1, 2, 4]]
    assert banned(Constraints(no_repeat_ngram_size=3), number=0) == [[[], []], [[], []]]
    assert banned(Constraints(no_repeat_ngram_size=9)) == [[[], []], [[], []]]


def test_forbidden_tokens_and_sequences():
    rules = Constraints(forbidden=(7, (2, 5), (1, 2, 6), (4, 0), (END,), (9, 9, 1, 2, 4)))
    assert banned(rules) == [[[5, 6, 7], [0, 7]], [[7], [7]]]
    assert banned(rules, number=0) == [[[5, 6, 7]] * 2, [[7]] * 2]  # padding begins none
    assert rules == Constraints(forbidden=([7], [2, 5], [1, 2, 6], [4, 0], [END], [9, 9, 1, 2, 4]))


def test_scores_of_repeated_tokens_are_divided_or_multiplied():
    before, after = scores_by(Constraints(repetition_penalty=2.0))
    factor = np.where(before > 0, 0.5, 2.0)
    present = np.zeros((2, 2, 10), bool)
    for b, k, ids in (
        (0, 0, (1, 2, 3)),
        (0, 1, (1, 2, 4)),
        (1, 0, (1, 2, 3)),
        (1, 1, (1, 2, 3, 5, 6)),
    ):
        present[b, k, list(ids)] = True
    np.testing.assert_array_equal(after, np.where(present, before * factor, before))


def test_ends_and_forced_tokens():
    assert banned(Constraints(min_new_tokens=4)) == [[[END]] * 2] * 2
    assert banned(Constraints(min_new_tokens=3)) == [[[]] * 2] * 2
    but = lambda token: [[[i for i in range(10) if i != token]] * 2] * 2  # noqa: E731
    forced = Constraints(forced_first=5, forced_last=6)
    assert banned(forced, number=0) == but(5)
    assert banned(forced, number=3) == but(6)
    assert banned(forced, number=2) == [[[]] * 2] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beam(2, best=3), "best=3"),
        (lambda: Beam(2, normalization="sum"), "normalization=sum"),
        (lambda: Beam(2, early_stopping="soon"), "early_stopping='soon'"),
        (lambda: Beam(length_penalty=11), "length_penalty=11"),
        (lambda: Sample(top_p=1.5), "top_p"),
        (lambda: Sample(seed=0.5), "seed"),
        (lambda: Constraints(repetition_penalty=0), "repetition_penalty=0"),
        (lambda: Constraints(forbidden=((),)), "empty row"),
        (lambda: Constraints(forbidden=(2.7,)), "forbidden"),
        (lambda: Constraints(forbidden=tuple(range(60))).check(60, 5), "all 60"),
        (lambda: Constraints(forbidden=(60,)).check(60, 5), "id 60"),
        (lambda: Constraints(min_new_tokens=6).check(60, 5), "max_new_tokens=5"),
    ],
)
def test_settings_out_of_range(make, message):
    Constraints(forbidden=tuple(range(59))).check(60, 5)
    with pytest.raises(InputError, match=message):
        make()
