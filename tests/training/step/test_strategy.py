"""Training under a strategy is training on one device."""

import pytest

from tests.programs import found_by
from tests.training.strategy_runs import COMPARED, PRETRAININGS
from tfnlp.training import make_strategy
from tfnlp.utils.errors import InputError

CASES = (*COMPARED, *PRETRAININGS, "adversarial", "distilling", "recomputed in parts", "adapted")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What `strategy_runs.py` found, all cases in one process."""
    found = found_by("training/strategy_runs.py", tmp_path_factory.mktemp("strategies"))
    assert found["replicas"] == 2 and found["same"]
    return found


@pytest.mark.parametrize("case", CASES)
def test_mirrored_training_is_that_of_one_device(case, runs):
    """Steps of 4, 3, 1 and 2 examples over two replicas, of differing weights."""
    found = runs[case]
    assert found["difference"] <= 1e-6
    assert found["moved"] > 0.02
    # The last gradients of both, all together, are clipped to 0.05.
    assert found["norms"] == pytest.approx([0.05, 0.05], abs=1e-7)
    for key, (one, other) in found["logs"].items():
        assert other == pytest.approx(one, rel=1e-6, abs=1e-6), key


def test_what_is_distilled_is_shown_apart(runs):
    logs = runs["distilling"]["logs"]
    names = ("hard_label", "soft_label", "hidden_state", "attention_score")
    parts = [f"{name}_loss" for name in names]
    assert {name for name in logs if not name.startswith("val_")} == {*parts, "loss"}
    assert "val_hard_label_loss" in logs
    assert all(logs[name][0] > 0.01 for name in parts)


def test_a_killed_mirrored_run_ends_with_the_same_weights(runs):
    assert runs["resume"]["difference"] == 0
    assert runs["resume"]["logs"] == pytest.approx([0, 0], abs=1e-6)


def test_figures_of_mirrored_steps_are_exact_and_those_of_a_killed_run_too(runs):
    """Batches of 4, 4, 4 and 1 example over two replicas, in windows of an epoch."""
    lines, resumed = runs["resume"]["lines"]
    assert [line["step"] for line in lines] == [4, 8]
    for line, other, loss in zip(lines, resumed, runs["resume"]["losses"], strict=True):
        assert line.keys() == {"step", "loss", "learning_rate", "gradient_norm"}
        assert other == pytest.approx(line, rel=1e-6)
        assert line["loss"] == pytest.approx(loss, rel=1e-6)


def test_an_overflow_on_one_replica_leaves_the_step_out_on_all(runs):
    (spoiled, further), scales = runs["overflow"]["moved"], runs["overflow"]["scales"]
    assert spoiled == 0 and 1e-3 < further < 1
    assert scales == [2.0**14, 2.0**14]


def test_ranges_are_the_mean_of_the_replicas_and_can_be_saved(runs):
    assert runs["ranges"]["layer/inputs"] == pytest.approx([0, 1.5])


def test_unknown_strategy_is_named():
    with pytest.raises(InputError, match=r"strategy=tpu is unknown"):
        make_strategy("tpu")
