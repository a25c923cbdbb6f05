"""Times of calls that take turns."""

import time

import numpy as np


def medians(calls, repeats=21):
    """Return {name: ms of a call, the median}; the calls take turns."""
    times = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: float(np.median(values)) for name, values in times.items()}
