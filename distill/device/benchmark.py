"""Size, latency, peak memory and agreement of an exported file."""

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

from distill.runtime import TextClassifier
from tfnlp.errors import InputError
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizer import Encoding

LENGTHS = (16, 32, 64, 128)
THREADS = (1, 2)


def benchmark_file(path, lengths=LENGTHS, threads=THREADS, repeats=50):
    """Size, latency and peak memory, measured in a process that only runs the file.

    Returns:
        A dict of `size_mb`, `peak_memory_mb` (the whole process, Python included),
        `memory_before_mb` (the same before the file is loaded) and `latency_ms`,
        {threads: {length: median}}.

    Raises:
        InputError: if the file cannot be run.
    """
    command = [sys.executable, "-m", "distill.device.benchmark", str(path), str(repeats)]
    command += [",".join(map(str, lengths)), ",".join(map(str, threads))]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{path} ended the process that ran it."]
        raise InputError(lines[-1])
    return json.loads(done.stdout.splitlines()[-1])


def latencies(classifier, lengths, repeats):
    """Median milliseconds of one run at each length, {length: ms}."""
    rng = np.random.default_rng(0)
    medians = {}
    for length in lengths:
        ids = rng.integers(5, classifier.tokenizer.vocabulary_size, length)
        encoding = Encoding(ids.tolist(), [0] * length, cut=False)
        for _ in range(5):
            classifier.run(encoding)
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            classifier.run(encoding)
            seconds.append(time.perf_counter() - start)
        medians[length] = float(np.median(seconds)) * 1e3
    return medians


def agreement(path, model, texts):
    """The share of texts to which the file and a Keras classifier give the same label."""
    from tfnlp.training.report import predict_logits

    classifier = TextClassifier(path, num_threads=2)
    encodings = classifier.tokenizer.encode(texts, max_length=classifier.max_length)
    expected = predict_logits(model, LengthBatches(encodings, 32)).argmax(1)
    found = [int(np.argmax(classifier.run(encoding))) for encoding in encodings]
    return float(np.mean(expected == found))


def print_benchmark(figures):
    """Prints the figures as a table."""
    print(f"size          {figures['size_mb']:8.2f} MB")
    before = figures["memory_before_mb"]
    print(f"peak memory   {figures['peak_memory_mb']:8.1f} MB ({before:.1f} before loading)")
    if "agreement" in figures:
        print(f"agreement     {figures['agreement']:8.2%}")
    for threads, medians in figures["latency_ms"].items():
        for length, ms in medians.items():
            print(f"{threads} thread(s), {length:>3} tokens {ms:8.2f} ms")


def _measure(path, repeats, lengths, threads):
    import psutil

    before = psutil.Process().memory_info().rss / 1e6
    figures = {
        "size_mb": os.path.getsize(path) / 1e6,
        "memory_before_mb": before,
        "latency_ms": {
            t: latencies(TextClassifier(path, num_threads=t), lengths, repeats) for t in threads
        },
    }
    figures["peak_memory_mb"] = _peak_memory() / 1e6
    print(json.dumps(figures))


def _peak_memory():
    """The most bytes that this process held."""
    import resource

    status = pathlib.Path("/proc/self/status")
    if status.exists():  # Linux, where ru_maxrss counts the parent's memory too
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


if __name__ == "__main__":
    try:
        _measure(
            sys.argv[1],
            int(sys.argv[2]),
            [int(n) for n in sys.argv[3].split(",")],
            [int(n) for n in sys.argv[4].split(",")],
        )
    except InputError as e:
        sys.exit(str(e))
