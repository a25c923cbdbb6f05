"""Cluster of worker processes that train one model, read from TF_CONFIG."""

import collections
import dataclasses
import json
import os

from tfnlp.utils.errors import InputError

EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Workers of a TF_CONFIG and the index of this process.

    Args:
        workers: addresses "host:port" of all processes, the chief's first.
        index: index of this process in `workers`.
    """

    workers: tuple
    index: int


def read_cluster(text=None):
    """Return the `Cluster` of a TF_CONFIG.

    Args:
        text: its JSON; None reads the environment variable. Beside "worker" it may have a "chief",
            as Kubernetes' training operator writes it.

    Raises:
        InputError: if it is missing, is not JSON, or does not describe a cluster of workers that
            includes this process.
    """
    text = os.environ.get("TF_CONFIG") if text is None else text
    if not text:
        raise InputError(
            "strategy=multi_worker needs the environment variable TF_CONFIG, which names all "
            f"workers, and which of them this process is, such as {EXAMPLE}."
        )
    try:
        said = json.loads(text)
    except json.JSONDecodeError as e:
        raise InputError(f"TF_CONFIG is not JSON ({e}); write it as {EXAMPLE}.") from None

    def refuse(why):
        return InputError(f"TF_CONFIG {why}; write it as {EXAMPLE}.")

    cluster, task = (said.get(k) if isinstance(said, dict) else None for k in ("cluster", "task"))
    if not isinstance(cluster, dict) or not isinstance(task, dict):
        raise refuse('has no objects "cluster" and "task"')
    unknown = sorted(cluster.keys() - {"chief", "worker"})
    if unknown:
        raise refuse(f"names {unknown[0]!r} in its cluster, where workers (and a chief) alone are")
    for kind, addresses in cluster.items():
        whole = isinstance(addresses, list) and addresses
        if not whole or not all(isinstance(a, str) and _is_address(a) for a in addresses):
            raise refuse(f"gives {kind!r} as {addresses!r}, which is no list of host:port")
    chiefs, others = cluster.get("chief", []), cluster.get("worker", [])
    workers = [*chiefs, *others]
    (repeated, times), *_ = collections.Counter(workers).most_common(1) or [(None, 0)]
    if times > 1:
        raise refuse(f"gives the address {repeated} to {times} workers")
    kind, index = task.get("type"), task.get("index")
    if kind not in cluster or type(index) is not int or not 0 <= index < len(cluster[kind]):
        raise refuse(f"has the task {task}, which is none of its cluster's")
    return Cluster(tuple(workers), index + (len(chiefs) if kind == "worker" else 0))


def _is_address(text):
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65536
