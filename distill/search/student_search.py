"""Evolutionary search of the best student within a budget, without TensorFlow."""

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Callable

import numpy as np
import scipy.optimize

from distill.search.sub_student import SearchSpace, SubStudent
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import json_text, write_text
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.settings import setting

# Students of the first generation, and the random draws among which they are looked for.
GENERATION, DRAWS = 24, 20_000


@dataclasses.dataclass(frozen=True)
class Budget:
    """Bounds of what a phone can bear; None for any."""

    latency_ms: float | None = setting(
        None, "Most milliseconds of a text of `tokens`, on one thread.", low=1e-6
    )
    size_mb: float | None = setting(None, "Most MB (1e6 bytes) of the file.", low=1e-6)

    def excess(self, costs):
        """Return by what factor `Costs` go beyond the budget; 1 or less within it."""
        pairs = (costs.latency_ms, self.latency_ms), (costs.size_mb, self.size_mb)
        return max((cost / limit for cost, limit in pairs if limit is not None), default=0.0)


def beyond(budget, costs, timed_elsewhere):
    """Return sentences on what measured costs have beyond a budget.

    Args:
        budget: a `Budget`.
        costs: `Costs` of the winner's file on this machine.
        timed_elsewhere: whether the budget's time is of another device.
    """
    if timed_elsewhere:
        budget = dataclasses.replace(budget, latency_ms=None)
    if budget.excess(costs) <= 1:
        return []
    return ["That is beyond the budget: give a lower one, on a machine at rest."]


@dataclasses.dataclass(frozen=True)
class Tried:
    """Student that was tried: a `SubStudent`, its predicted costs, and its score on dev."""

    student: SubStudent
    latency_ms: float
    size_mb: float
    score: float


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Students that may be tried.

    Args:
        space: a complete `SearchSpace`.
        depth: the number of the supernet's layers.
        budget: a `Budget`.
        predict: function from a `SubStudent` to its `Costs`, none of which more parts make less.
    """

    space: SearchSpace
    depth: int
    budget: Budget
    predict: Callable

    def excess(self, student):
        """Return by what factor a student goes beyond the budget; 1 or less within it."""
        return self.budget.excess(self.predict(student))

    def check(self):
        """Raise an InputError, with the smallest student, if none is within the budget."""
        smallest = self.space.smallest(self.depth)
        if self.excess(smallest) > 1:
            raise InputError(
                f"No student of the space is within the budget; the nearest has {smallest}: "
                f"{self.predict(smallest)}. Give a higher `latency_ms` or `size_mb`, or smaller "
                "numbers to try."
            )

    def first_generation(self, seed):
        """Return vectors of random students within the budget, `GENERATION` or all there are.

        One at least must be, see `check`.
        """
        low, high = np.array(self.space.bounds(self.depth)).T
        draws = np.random.default_rng(seed).integers(low, high + 1, (DRAWS, len(low)))
        within = {}
        for vector in draws:
            student = self.space.student(vector)
            if student not in within and self.excess(student) <= 1:
                within[student] = vector
            if len(within) == GENERATION:
                break
        vectors = [*within.values()] or [low]  # which is the smallest
        return np.array([vectors[i % len(vectors)] for i in range(max(5, len(vectors)))])


def search(candidates, score, path, count, seed=0):
    """Search the candidate of the highest score, by differential evolution.

    Storn & Price 1997, as `scipy.optimize.differential_evolution` has it for integers. A student
    beyond the budget is not scored, and is worse than any within it.

    Args:
        candidates: `Candidates`.
        score: function from a `SubStudent` to a number, the higher the better.
        path: of a file of JSON Lines, one for each student that was tried; they are not tried
            again, so that a search goes on.
        count: of students to try.
        seed: of the search.

    Returns:
        A list of `Tried`, the best first; of equal ones the faster, then the smaller.

    Raises:
        InputError: if no student is within the budget.
    """
    path, tried = pathlib.Path(path), {}
    known = {x.student: x.score for x in read_tried(path)}
    candidates.check()
    generation = candidates.first_generation(seed)

    class Enough(Exception):
        pass

    with progress_bar(total=count, desc="search", unit="student") as bar:

        def loss(vector):
            student = candidates.space.student(vector)
            excess = candidates.excess(student)
            if excess > 1:
                return 1e6 * excess
            if student not in tried:
                if len(tried) == count:
                    raise Enough
                # Of a known one the score alone counts: its costs may be of another table.
                value = known[student] if student in known else score(student)
                costs = candidates.predict(student)
                tried[student] = Tried(student, costs.latency_ms, costs.size_mb, value)
                if student not in known:
                    _append(path, tried[student])
                bar.update()
                best = max(x.score for x in tried.values())
                bar.set_postfix(best=f"{best:.4f}", refresh=False)
            return -tried[student].score

        with contextlib.suppress(Enough):
            scipy.optimize.differential_evolution(
                loss,
                candidates.space.bounds(candidates.depth),
                integrality=True,
                init=generation,
                maxiter=count,
                tol=0,
                atol=-1,  # a generation that scores alike is no end
                polish=False,
                rng=seed,
            )
    return sorted(tried.values(), key=lambda x: (-x.score, x.latency_ms, x.size_mb))


def read_tried(path):
    """Return the `Tried` of a file, a list; none where there is no file."""
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else ()
    rows = map(json.loads, lines)  # without a last one that a kill cut short
    return [Tried(_student(row.pop("student")), **row) for row in rows]


def _student(fields):
    return SubStudent(**fields | {"layers": tuple(fields["layers"])})


def _append(path, tried):
    """Add a `Tried` to the file, in place of a last line that a kill cut short."""
    text = path.read_text("utf-8") if path.exists() else ""
    line = json_text(dataclasses.asdict(tried)) + "\n"
    write_text(path, text[: text.rfind("\n") + 1] + line)
