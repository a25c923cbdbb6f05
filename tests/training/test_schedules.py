"""Learning rate schedules, as in papers and transformers."""

import pytest

from tfnlp.training.schedules import (
    SCHEDULES,
    WarmupInverseSquareRoot,
    WarmupLinearDecay,
    vaswani_peak,
)


def test_schedule_rises_and_falls_linearly():
    schedule = WarmupLinearDecay(2.0, total_steps=10, warmup_steps=4)
    found = [float(schedule(step)) for step in (0, 2, 4, 7, 10, 12)]
    assert found == pytest.approx([0, 1, 2, 1, 0, 0])
    assert float(WarmupLinearDecay(2.0, 10)(0)) == 2
    assert float(WarmupLinearDecay(2.0, 4, 4)(4)) == 2  # warm-up to the end
    with pytest.raises(ValueError, match="warmup_steps=11"):
        WarmupLinearDecay(1.0, 10, 11)


def test_the_rate_of_the_transformer_is_that_of_the_paper():
    width, warmup = 512, 4000
    assert vaswani_peak(width, warmup) == pytest.approx(6.987712e-4, rel=1e-6)
    schedule = WarmupInverseSquareRoot(vaswani_peak(width, warmup), 100_000, warmup)
    for step in (1, 100, 4000, 4001, 100_000):
        due = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert float(schedule(step)) == pytest.approx(due, rel=1e-5)


THEIR_NAMES = {"constant": "constant_with_warmup"}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_those_of_transformers(name):
    torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
    transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")
    for warmup in (0, 7):
        schedule = SCHEDULES[name](0.3, 40, warmup)
        stepped = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
        theirs = transformers.get_scheduler(THEIR_NAMES.get(name, name), stepped, warmup, 40)
        expected = []
        for _ in range(41):
            expected.append(theirs.get_last_lr()[0])
            stepped.step()
            theirs.step()
        assert [float(schedule(step)) for step in range(41)] == pytest.approx(expected, abs=1e-7)
        copy = type(schedule).from_config(schedule.get_config())
        assert float(copy(13)) == float(schedule(13))
    # After its end a run that goes on has the last rate; a cosine would rise again.
    assert float(schedule(60)) <= float(schedule(40))
