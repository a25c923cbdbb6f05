"""The search finds the best student within a budget, and goes on where it stopped."""

import itertools

import pytest

from distill.search import (
    Budget,
    Candidates,
    SearchSpace,
    beyond,
    page,
    search,
    student_search,
)
from distill.search.cost_table import Costs
from tfnlp.models import BertConfig, XLNetConfig
from tfnlp.utils.errors import InputError

SPACE = SearchSpace((1, 2, 3), (2, 4), (8, 16, 32), (100, 200))


def predict(student):
    ms = len(student.layers) * (student.num_heads + student.intermediate_dim / 8) / 10
    return Costs(ms, student.vocabulary_size / 100)


def score(student):
    """Prefer upper layers, units over heads, and many tokens."""
    parts = sum(student.layers) + student.intermediate_dim / 16 + student.num_heads / 8
    return parts + student.vocabulary_size / 1000


def all_students():
    for count in SPACE.num_layers:
        for layers in itertools.combinations(range(4), count):
            places = [layer in layers for layer in range(4)]
            for vector in itertools.product(range(2), range(3), range(2)):
                yield SPACE.student([*places, SPACE.num_layers.index(count), *vector])


@pytest.mark.parametrize("budget", [Budget(0.9), Budget(size_mb=1.5), Budget(1.3, 1.0)])
def test_the_best_within_the_budget_is_found(tmp_path, budget):
    tried = search(Candidates(SPACE, 4, budget, predict), score, tmp_path / "tried.jsonl", 150)
    within = [x for x in all_students() if budget.excess(predict(x)) <= 1]
    assert len({*map(str, all_students())}) == 168 > len(within)
    assert tried[0].score == max(map(score, within))
    assert {x.student for x in tried} <= {*within}
    assert all(x.score == score(x.student) for x in tried)


@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_a_search_goes_on_where_students_score_alike(tmp_path, alike):
    candidates = Candidates(SPACE, 4, Budget(0.9), predict)
    assert len(search(candidates, lambda student: alike, tmp_path / "tried.jsonl", 40)) == 40


def test_a_stopped_search_goes_on(tmp_path):
    path, budget = tmp_path / "tried.jsonl", Budget(0.9)
    scored = []

    def counted(student):
        scored.append(student)
        return score(student)

    half = search(Candidates(SPACE, 4, budget, predict), counted, path, 15)
    with path.open("a") as file:
        file.write('{"student": {"layers": [0')  # a line that a kill cut short
    whole = search(Candidates(SPACE, 4, budget, predict), counted, path, 30)
    assert len(path.read_text().splitlines()) == 30
    assert len(half) == 15 and len(whole) == len(scored) == len({*scored}) == 30
    other = tmp_path / "other.jsonl"
    assert whole == search(Candidates(SPACE, 4, budget, predict), score, other, 30)


def test_costs_are_of_the_present_table(tmp_path):
    def slower(student):
        return Costs(2 * predict(student).latency_ms, predict(student).size_mb)

    path = tmp_path / "tried.jsonl"
    search(Candidates(SPACE, 4, Budget(2.0), predict), score, path, 150)
    tried = search(Candidates(SPACE, 4, Budget(0.9), slower), score, path, 150)
    assert all(x.latency_ms == slower(x.student).latency_ms for x in tried)


def test_a_budget_that_no_student_meets_shows_the_nearest(tmp_path):
    nearest = r"layers 3; 2 heads, 8 units, 100 tokens: 0\.30 ms, 1\.0 MB"
    with pytest.raises(InputError, match=nearest):
        search(Candidates(SPACE, 4, Budget(0.1), predict), score, tmp_path / "x.jsonl", 10)


def test_a_file_beyond_the_budget_is_told():
    slow, large, budget = Costs(0.9, 1.0), Costs(0.5, 3.0), Budget(0.6, 2.0)
    assert "beyond" in beyond(budget, slow, timed_elsewhere=False)[0]
    assert not beyond(budget, slow, timed_elsewhere=True)
    assert "beyond" in beyond(budget, large, timed_elsewhere=True)[0]


def test_a_student_that_no_draw_meets_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(student_search, "DRAWS", 1)
    candidates = Candidates(SPACE, 4, Budget(0.3, 1.0), predict)  # the smallest of each layer
    tried = search(candidates, score, tmp_path / "tried.jsonl", 4)
    assert tried[0].student.intermediate_dim == 8 and tried[0].latency_ms == pytest.approx(0.3)


def test_defaults_are_of_the_teacher():
    config = BertConfig(num_layers=4, num_heads=8, intermediate_dim=64, vocabulary_size=100)
    space = SearchSpace().complete(config, [50, 100])
    assert space == SearchSpace((1, 2, 3, 4), (1, 2, 4, 6, 8), (8, 16, 32, 48, 64), (50, 100))
    assert space.smallest(4).layers == (3,) and space.largest(4).layers == (0, 1, 2, 3)
    xlnet = XLNetConfig(num_heads=8, hidden_dim=64)
    assert SearchSpace().complete(xlnet, [100]).num_heads == (8,)
    with pytest.raises(InputError, match="num_heads=4: heads of a xlnet"):
        SearchSpace(num_heads=(4, 8)).complete(xlnet, [100])


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (SearchSpace((9,)), "num_layers=9 must lie from 1 to the teacher's 4"),
        (SearchSpace((0, 2)), "num_layers=0,2 must"),
        (SearchSpace(keep_tokens=(50, 101)), "keep_tokens=50,101 must lie .* 100"),
        (SearchSpace((4,), (8,), (64,), (100,)), "nothing to search"),
    ],
)
def test_spaces_beyond_the_teacher_and_of_no_choice_are_refused(space, words):
    config = BertConfig(num_layers=4, num_heads=8, intermediate_dim=64, vocabulary_size=100)
    with pytest.raises(InputError, match=words):
        space.complete(config, [100])


def test_the_page_shows_the_winner(tmp_path):
    tried = search(Candidates(SPACE, 4, Budget(0.9), predict), score, tmp_path / "tried.jsonl", 20)
    text = page(tried, Budget(0.9), "accuracy", ["Timed on <here>."])
    assert str(tried[0].student) in text and f"{tried[0].score:.4f}" in text
    assert "&lt;here&gt;" in text and text.count("<svg") == 2
