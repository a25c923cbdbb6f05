"""Cluster of worker processes that train one model, read from TF_CONFIG.

`tf.distribute.cluster_resolver.TFConfigClusterResolver` takes a missing TF_CONFIG for one worker
alone and waits for addresses that cannot be; recipes refuse both before they import TensorFlow.
"""

import dataclasses
import json
import os
import re

from tfnlp.utils.errors import InputError

EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
)

_ADDRESS = re.compile(r".+:[0-9]{1,5}")


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
        InputError: if it does not describe a cluster that includes this process.
    """
    text = os.environ.get("TF_CONFIG", "") if text is None else text
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        chiefs = cluster.get("chief", [])
        workers = [*chiefs, *cluster.get("worker", [])]
        index = range(len(cluster[task["type"]])).index(task["index"])
        index += len(chiefs) if task["type"] == "worker" else 0
        addresses = {address for address in workers if _ADDRESS.fullmatch(address)}
        if len(addresses) < len(workers) or cluster.keys() - {"chief", "worker"}:
            raise ValueError(f"{cluster} has other jobs, or one address twice or without a port")
    except (ValueError, LookupError, TypeError, AttributeError) as e:
        raise InputError(
            "strategy=multi_worker needs the environment variable TF_CONFIG, which names all "
            f"workers and which of them this process is, such as {EXAMPLE}; it is {text!r} ({e})."
        ) from None
    return Cluster(tuple(workers), index)
