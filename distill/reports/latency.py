"""Size, latency and peak memory of an exported file."""

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import psutil

from distill.runtime import load_runner
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.utils.errors import InputError

LENGTHS = (16, 32, 64, 128)
THREADS = (1, 2)
FIRST = 32  # tokens of the first call, at most the file's maximum


def benchmark_file(path, lengths=LENGTHS, threads=THREADS, repeats=50):
    """Measure size, latency and peak memory in a process that only runs the file.

    Args:
        path: the file.
        lengths: tokens of the texts to time. Those above the file's `max_length`, where it would
            truncate, are left out; if none is left, `max_length` itself is timed.
        threads: numbers of threads.
        repeats: timed runs for each figure.

    Returns:
        A dict of

        - `size_mb`;
        - `peak_memory_mb`, of the whole process, Python included, and `memory_before_mb`, the same
          before the file is loaded;
        - `create_ms`, to open the file, its tokenizer included, and `first_call_ms`, of the first
          text, when LiteRT prepares its graph, at `first_call_tokens` (32, or the file's maximum);
        - `latency_ms`, {threads: {length: median of a warm call}};
        - `mixed_ms` and `equal_ms`, of a text when the lengths change from call to call, and when
          texts of one length follow each other: means over the lengths, of medians, with the first
          number of threads.

    Raises:
        InputError: if the file cannot be run.
    """
    arguments = json.dumps([str(path), repeats, lengths, threads])
    command = [sys.executable, "-m", "distill.reports.latency", arguments]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [f"{path} ended the process that ran it."]
        raise InputError(lines[-1])
    return json.loads(process.stdout.splitlines()[-1])


def latencies(runner, lengths, repeats):
    """Measure the median milliseconds of one run at each length, {length: ms}."""
    run = runner.backend.run_one
    return {n: median_ms(run, [_encoding(runner, n)], repeats) for n in lengths}


def median_ms(function, arguments, repeats):
    """Return the median milliseconds of warm calls."""
    times = [_timed(function, *arguments) for _ in range(5 + repeats)]
    return float(np.median(times[5:]))


def mixed_latencies(runner, lengths, repeats):
    """Measure milliseconds per text when lengths change at each call, and when they do not.

    Returns:
        Two means over the lengths, of medians.
    """
    encodings = [_encoding(runner, length) for length in lengths]
    times_by_order = {False: [[] for _ in lengths], True: [[] for _ in lengths]}
    turns = [place for _ in range(repeats) for place in range(len(lengths))]
    for start in range(0, len(turns), 10 * len(lengths)):
        part = turns[start : start + 10 * len(lengths)]
        # Alternate, so that other load on the machine affects both.
        for changing in (True, False):
            for place in part if changing else sorted(part):
                ms = _timed(runner.backend.run_one, encodings[place])
                times_by_order[changing][place].append(ms)
    means = (np.mean([np.median(times) for times in times_by_order[key]]) for key in (True, False))
    return tuple(map(float, means))


def _encoding(runner, length):
    """Return an encoding of random tokens."""
    ids = np.random.default_rng(length).integers(5, runner.tokenizer.vocabulary_size, length)
    return Encoding(ids.tolist(), [0] * length)


def _timed(function, *arguments):
    """Measure the milliseconds of one call."""
    start = time.perf_counter()
    function(*arguments)
    return (time.perf_counter() - start) * 1e3


def print_benchmark(figures, check=None):
    """Print the figures as a table; `check` is a sentence on how close the file is to Keras."""
    print(f"size          {figures['size_mb']:8.2f} MB")
    before = figures["memory_before_mb"]
    print(f"peak memory   {figures['peak_memory_mb']:8.1f} MB ({before:.1f} before loading)")
    if check:
        print(check)
    print(f"to create     {figures['create_ms']:8.2f} ms")
    first = figures["first_call_tokens"]
    print(f"first call    {figures['first_call_ms']:8.2f} ms at {first} tokens")
    for threads, medians in figures["latency_ms"].items():
        for length, ms in medians.items():
            print(f"{threads} thread(s), {length:>3} tokens {ms:8.2f} ms")
    mixed, equal = figures["mixed_ms"], figures["equal_ms"]
    print(
        f"mixed lengths {mixed:8.2f} ms a text; texts of one length in a row take {equal:.2f} ms, "
        f"{mixed / equal:.2f} times less"
    )


def _measure(path, repeats, lengths, threads):
    before = psutil.Process().memory_info().rss / 1e6
    start = time.perf_counter()
    # A trial run would do the preparation that the first call is to measure.
    runner = load_runner(path, threads[0], try_out=False)
    created = time.perf_counter() - start
    first_length = min(FIRST, runner.max_length)
    first = _timed(runner.backend.run_one, _encoding(runner, first_length))
    lengths = [n for n in lengths if n <= runner.max_length] or [runner.max_length]
    latency = {threads[0]: latencies(runner, lengths, repeats)}
    mixed, equal = mixed_latencies(runner, lengths, repeats)
    latency |= {t: latencies(load_runner(path, t), lengths, repeats) for t in threads[1:]}
    figures = {
        "size_mb": os.path.getsize(path) / 1e6,
        "memory_before_mb": before,
        "create_ms": created * 1e3,
        "first_call_ms": first,
        "first_call_tokens": first_length,
        "latency_ms": latency,
        "mixed_ms": mixed,
        "equal_ms": equal,
        "peak_memory_mb": _peak_memory() / 1e6,
    }
    print(json.dumps(figures))


def _peak_memory():
    """Return the peak memory of this process, in bytes."""
    import resource

    status = pathlib.Path("/proc/self/status")
    if status.exists():  # Linux, where ru_maxrss counts the parent's memory too
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


if __name__ == "__main__":
    try:
        _measure(*json.loads(sys.argv[1]))
    except InputError as e:
        sys.exit(str(e))
