"""Several processes that train together end with the weights of one."""

import json

import pytest
import tensorflow as tf

from tests import kills
from tests.training import worker_runs
from tfnlp.training import make_strategy
from tfnlp.utils.errors import InputError


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What two workers found in both rounds, by run and worker; and one process, in "one0"."""
    folder = tmp_path_factory.mktemp("workers")
    for number, last in (("1", -9), ("2", 0)):
        codes, errors = worker_runs.start(folder, number)
        assert codes == [0, last], errors
    weights, logs = worker_runs.train(tf.distribute.get_strategy(), folder / "one", True)
    return worker_runs.ends(folder) | {"one0": {"logs": logs, "weights": weights}}


def largest_difference(a, b):
    return kills.largest_difference(a["weights"], b["weights"])


def test_two_workers_end_with_the_weights_and_metrics_of_one_process(runs):
    one, whole = runs["one0"], runs["whole0"]
    assert whole["replicas"] == 2
    assert largest_difference(whole, one) <= 1e-6
    assert largest_difference(whole, runs["whole1"]) == 0
    assert len(whole["logs"]) == 3
    for ours, theirs in zip(whole["logs"], one["logs"], strict=True):
        assert {"loss", "val_accuracy", "val_loss"} < ours.keys()
        assert ours == pytest.approx(theirs, abs=1e-6)
    assert one["logs"][0]["loss"] - one["logs"][2]["loss"] > 0.01


def test_a_run_of_which_a_worker_was_killed_goes_on_to_the_same_weights(runs):
    left = runs["left0"]["error"]
    assert "cannot go on without another worker" in left and "start all of them again" in left
    for worker in (0, 1):
        assert largest_difference(runs[f"broken{worker}"], runs["whole0"]) == 0
        assert runs[f"broken{worker}"]["logs"] == runs["whole0"]["logs"]


def test_a_signal_to_one_worker_stops_all_at_one_step(runs):
    for worker in (0, 1):
        assert largest_difference(runs[f"stopped{worker}"], runs["whole0"]) == 0


def test_workers_that_were_started_unlike_say_so_all(runs):
    for worker in (0, 1):
        error = runs[f"unlike{worker}"]["error"]
        assert "of the settings, `weight_decay` is 0.1 for the first and 0.2 for" in error


def test_a_strategy_that_comes_too_late_is_told(monkeypatch):
    tf.constant(1) + 1
    cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
    text = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError, match="must be made before any other TensorFlow operation"):
        make_strategy("multi_worker")
    monkeypatch.setenv("TF_CONFIG", text.replace(', "127.0.0.1:2"', ""))
    assert make_strategy("multi_worker") is tf.distribute.get_strategy()
