"""Clusters of workers, as TF_CONFIG describes them."""

import json

import pytest

from tfnlp.training import is_chief, make_strategy
from tfnlp.training.step.worker_cluster import Cluster, read_cluster
from tfnlp.utils.errors import InputError


def test_a_cluster_is_read():
    text = json.dumps(
        {
            "cluster": {"chief": ["a:1"], "worker": ["b:2", "[::1]:3"]},
            "task": {"type": "worker", "index": 1},
        }
    )
    assert read_cluster(text) == Cluster(("a:1", "b:2", "[::1]:3"), 2)


ONE = '{"cluster": {"worker": ["a:1"]},'
TASK = '"task": {"type": "worker", "index": 0}'
BROKEN_JOBS = (
    *("", '"ps": ["a:1"]', '"worker": ["a:1"], "ps": ["b:1"]', '"worker": "a:1"'),
    *('"worker": ["a"]', '"worker": []', '"worker": ["a:1", "a:1"]'),
)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"cluster": {"worker": ["a:1"]}}'),
        *(f'{{"cluster": {{{jobs}}}, {TASK}}}' for jobs in BROKEN_JOBS),
        ONE + '"task": {"type": "worker", "index": 1}}',
        ONE + '"task": {"type": "chief", "index": 0}}',
    ],
)
def test_a_broken_cluster_is_told(text, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    for call in (lambda: make_strategy("multi_worker"), lambda: is_chief("multi_worker")):
        with pytest.raises(InputError, match="needs the environment variable TF_CONFIG"):
            call()
    assert is_chief("mirrored")
