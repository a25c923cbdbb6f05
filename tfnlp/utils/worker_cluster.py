"""Cluster of worker processes that train one model, read from TF_CONFIG.

`tf.distribute.cluster_resolver.TFConfigClusterResolver` takes a missing TF_CONFIG for one worker
alone and waits for addresses that cannot be; recipes refuse both before they import TensorFlow.
"""

import collections
import dataclasses
import itertools
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
        config = json.loads(text)
    except json.JSONDecodeError as e:
        raise InputError(f"TF_CONFIG is not JSON ({e}); write it as {EXAMPLE}.") from None
    reason = _mistake(config)
    if reason:
        raise InputError(f"TF_CONFIG {reason}; write it as {EXAMPLE}.")
    addresses, task = config["cluster"], config["task"]
    chiefs = addresses.get("chief", [])
    workers = (*chiefs, *addresses.get("worker", []))
    return Cluster(workers, task["index"] + (len(chiefs) if task["type"] == "worker" else 0))


def _mistake(config):
    """Return what is wrong with a parsed TF_CONFIG; None if it describes a cluster."""
    cluster, task = (
        config.get(k) if isinstance(config, dict) else None for k in ("cluster", "task")
    )
    if not isinstance(cluster, dict) or not isinstance(task, dict):
        return 'has no objects "cluster" and "task"'
    unknown = sorted(cluster.keys() - {"chief", "worker"})
    if unknown:
        return f"names {unknown[0]!r} in its cluster, where workers (and a chief) alone are"
    for kind, addresses in cluster.items():
        if (
            not isinstance(addresses, list)
            or not addresses
            or not all(map(_is_address, addresses))
        ):
            return f"gives {kind!r} as {addresses!r}, which is no list of host:port"
    counts = collections.Counter(itertools.chain(*cluster.values()))
    for address, count in counts.items():
        if count > 1:
            return f"gives the address {address} to {count} workers"
    kind, index = task.get("type"), task.get("index")
    if kind not in cluster or type(index) is not int or not 0 <= index < len(cluster[kind]):
        return f"has the task {task}, which is none of its cluster's"
    return None


def _is_address(text):
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65536
