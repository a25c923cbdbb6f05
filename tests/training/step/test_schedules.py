"""Learning rate schedules, as in papers and transformers."""

import pytest

from tfnlp.training.step.schedules import (
    SCHEDULES,
    WarmupInverseSquareRoot,
    WarmupLinearDecay,
    vaswani_peak,
)


def test_schedules_rise_and_end_at_a_share():
    assert float(WarmupLinearDecay(2.0, 4, 4)(4)) == 2  # warm-up to the end
    for name, half_way, more in (("linear", 30, {}), ("wsd", 44, {"decay_steps": 8})):
        share = SCHEDULES[name](2.0, 50, 10, end_share=0.25, **more)
        rates = [float(share(step)) for step in (5, half_way, 50, 60)]
        assert rates == pytest.approx([1.0, 1.25, 0.5, 0.5]), name
    with pytest.raises(ValueError, match="warmup_steps=11"):
        WarmupLinearDecay(1.0, 10, 11)
    with pytest.raises(ValueError, match="5 steps of warm-up and 6 of decay"):
        SCHEDULES["wsd"](1.0, 10, 5, decay_steps=6)


def test_the_rate_of_the_transformer_is_that_of_the_paper():
    width, warmup = 512, 4000
    assert vaswani_peak(width, warmup) == pytest.approx(6.987712e-4, rel=1e-6)
    schedule = WarmupInverseSquareRoot(vaswani_peak(width, warmup), 100_000, warmup)
    for step in (1, 100, 4000, 4001, 100_000):
        due = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert float(schedule(step)) == pytest.approx(due, rel=1e-5)


THEIR_NAMES = {
    "constant": "constant_with_warmup",
    "wsd": "warmup_stable_decay",
    "cosine": "cosine_with_min_lr",
}
# Ours and theirs, beside peak, steps and warm-up.
OPTIONS = {
    "cosine": ({"end_share": 0.1}, {"min_lr_rate": 0.1}),
    "polynomial": ({"power": 3.0, "end_share": 0.1}, {"power": 3.0, "lr_end": 0.03}),
    "wsd": ({"decay_steps": 10}, {"num_decay_steps": 10, "decay_type": "1-sqrt"}),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_those_of_transformers(name):
    torch = pytest.importorskip("torch", reason="parity needs .[parity]")
    transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")
    for warmup in (0, 7):
        options, theirs = OPTIONS.get(name, ({}, {}))
        schedule = SCHEDULES[name](0.3, 40, warmup, **options)
        stepped = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
        theirs = transformers.get_scheduler(
            THEIR_NAMES.get(name, name), stepped, warmup, 40, scheduler_specific_kwargs=theirs
        )
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
