"""Greedy and beam search in NumPy."""

import itertools

import numpy as np
import pytest

from tests.generation.test_search_algorithms import END, found
from tfnlp.generation import Beam, Constraints, Greedy, Sample
from tfnlp.generation.generation_settings import SearchSettings
from tfnlp.generation.numpy_search import TextSearch, beam_search, best_places, one_by_one
from tfnlp.utils.errors import InputError


def test_indices_of_the_largest_scores():
    scores = np.array([3, 5, 1, 5, 3, 5, 0], "float32")
    assert [*best_places(scores, 2)] == [1, 3]
    assert [*best_places(scores, 4)] == [1, 3, 5, 0]
    assert [*best_places(scores, 9)] == [1, 3, 5, 0, 4, 2, 6]
    many = np.random.default_rng(0).normal(size=(3, 1000)).astype("float32")
    many[1], many[2, ::3] = many[1].round(), -np.inf  # with many equals
    for row in many:
        np.testing.assert_array_equal(best_places(row, 8), np.argsort(-row, kind="stable")[:8])


class Table:
    """A decoder whose next token depends on the last alone."""

    def __init__(self, logits):
        self.logits = logits

    def step(self, token_ids, parents):
        return self.logits[token_ids]


def settings(strategy, constraints=None, steps=6, ends=(END,)):
    return SearchSettings(strategy, constraints or Constraints(), steps, ends, END)


@pytest.mark.parametrize("early_stopping", [True, False, "never"])
def test_texts_are_those_of_the_search_in_tensorflow(early_stopping):
    for seed, bonus, penalty in itertools.product(range(5), (0, 1), (-1.0, 0.0, 1.0, 2.0)):
        logits = 2 * np.random.default_rng(seed).normal(size=(8, 8)).astype("float32")
        logits[:, END] += bonus
        beam = Beam(3, penalty, early_stopping=early_stopping, best=3)
        texts = beam_search(Table(logits), logits[1], settings(beam))
        tokens, lengths, scores = found(logits, beam, steps=6)
        rows = [row[:n].tolist() for row, n in zip(tokens, lengths, strict=True)]
        assert [ids for ids, _ in texts] == rows
        np.testing.assert_allclose([score for _, score in texts], scores, atol=1e-5)
        tokens, (length,), _ = found(logits, Greedy(), steps=6)
        ids = one_by_one(Table(logits), logits[1], settings(Greedy()))
        assert ids == tokens[0, :length].tolist()


@pytest.mark.parametrize(
    "strategy", [Greedy(), Sample(1.3, 7, 0.9, 0.02, seed=5), Beam(2, best=2)]
)
def test_texts_with_constraints_and_several_ends_are_those_of_tensorflow(strategy):
    ends, lengths = (END, 5), set()
    constraints = Constraints(
        repetition_penalty=1.4,
        no_repeat_ngram_size=2,
        forbidden=(3, (1, 2), (6, 7, 6)),
        min_new_tokens=2,
        forced_first=6,
        forced_last=4,
        renormalize=isinstance(strategy, Beam),
    )
    options = {"steps": 9, "ends": ends}
    for seed in range(12):
        logits = 2 * np.random.default_rng(seed).normal(size=(10, 10)).astype("float32")
        search = TextSearch(Table(logits), settings(strategy, constraints, **options))
        texts = search(lambda: logits[1], [1], str, number=seed)  # noqa: B023
        draws = Sample.draws(strategy, seed, 0, 9)[None] if isinstance(strategy, Sample) else None
        rows = found(logits, strategy, constraints=constraints, draws=draws, **options)
        assert len(texts) == len(rows[0])
        for text, ids, length, score in zip(texts, *rows, strict=True):
            expected = ids[:length].tolist()
            assert [*text.token_ids] == expected[: length - (expected[-1] in ends)]
            assert text.score is None or abs(text.score - score) < 1e-5
            lengths.add(length)
    assert len(lengths) > 3 and 9 in lengths


def test_a_text_that_may_not_go_on_leaves_the_others_of_a_beam():
    logits = 3 * np.random.default_rng(0).normal(size=(100, 100)).astype("float32")
    logits[:, 2] += 6  # behind which nothing may come
    rules = Constraints(forbidden=tuple((2, i) for i in range(100)), renormalize=True)
    for beam in (Beam(2, best=2), Beam(2, best=2, early_stopping=True)):
        options = {"steps": 6, "ends": (99,)}
        texts = TextSearch(Table(logits), settings(beam, rules, **options))(
            lambda: logits[1], [1], str
        )
        tokens, lengths, _ = found(logits, beam, constraints=rules, **options)
        assert [[*text.token_ids] for text in texts] == tokens.tolist() and len(texts) == 2
        assert lengths.tolist() == [6, 6] and not (tokens[:, :-1] == 2).any()


def test_constraints_that_leave_nothing_and_other_bad_input():
    logits = np.zeros((6, 6), "float32")
    rules = Constraints(forbidden=(1, 2, 3, 4), min_new_tokens=3, no_repeat_ngram_size=1)
    for strategy in (Greedy(), Sample(texts=2), Beam(2)):
        with pytest.raises(InputError, match="no output for text 4"):
            TextSearch(Table(logits), settings(strategy, rules))(lambda: logits[1], [1], str, 3)
    for strategy in (Sample(texts=2), Beam(2)):
        write = TextSearch(Table(logits), settings(strategy))
        with pytest.raises(InputError, match="on_token"):
            write(lambda: logits[1], [1], str, on_token=print)
    plain = Constraints()
    for make, message in (
        (lambda: SearchSettings(Greedy(), plain, 2, (0,), 0, ["a", ""]), "stop_strings"),
        (lambda: SearchSettings(Beam(2), plain, 2, (0,), 0, "a"), "stop_strings"),
        (lambda: SearchSettings(Beam(2), plain, 2, (0, 1, 2), 0), "beams=2"),
        (lambda: SearchSettings(Greedy(), plain, 2, (0,), 0, [5]), r"stop_strings\[0\]"),
    ):
        with pytest.raises(InputError, match=message):
            make().check(vocabulary_size=7)
