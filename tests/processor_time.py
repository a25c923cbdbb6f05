"""Processor time of each test, and the list of tests that are slow.

`make slow-tests` runs all tests and writes the list anew. A test is slow above `LIMIT`, or that of
its folder; what `kept` names is never slow, so that each file and each sweep keeps a test in
`make test`.
"""

import collections
import contextlib
import os
import pathlib
import sys
import time
import xml.etree.ElementTree as ET

import psutil
import pytest

# Seconds of processor time of a test, with all of the fixtures that it shares with others: one
# of these has to pay for them.
LIMIT = 1.0
# Another limit in some folders: the tests of learning below it notice little, and the rest are
# sweeps of many cases.
FOLDER_LIMITS = {"tests/distill/learning/": 1.5, "tests/parity/": 0.5}
FOLDER_LIMITS |= {"tests/distill/export/": 0.5, "tests/distill/runtime/": 0.5}
# Seconds of the test alone, without its fixtures, above which one that is not in the list fails:
# far above `LIMIT`, since machines differ threefold and a first test pays for what it imports.
FAILS_ABOVE = 60.0
# Seconds that the cheapest test of a file, and the cheapest case of a sweep, may take to be kept.
FILE_LIMIT, SWEEP_LIMIT = 12.0, 3.0
SLOW_TESTS = pathlib.Path(__file__).with_name("slow_tests.txt")
# From a teacher over its student to the file and its answers; a killed run; one run each of
# pretraining and translation. Shorter tests of generation are many.
CHAIN = (
    "tests/recipes/test_demo.py::test_every_step_runs_and_the_table_says_what_came_out",
    "tests/recipes/test_finetune_classifier.py::test_a_killed_run_resumes_to_the_same_weights[2]",
    "tests/training/test_half_precision.py::test_weights_move_as_in_float32[plain]",
    "tests/training/experiments/test_pretraining.py::test_trains_logs_each_loss_and_saves_each_model",
    "tests/training/experiments/test_translator_training.py::test_learns_and_reports[recurrent]",
)


def pytest_collection_modifyitems(items):
    slow = set(SLOW_TESTS.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[_START] = _Clock()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    start = time.process_time()
    result = yield
    seconds = time.process_time() - start
    listed = item.get_closest_marker("slow") or item.nodeid.startswith(CHAIN)
    if seconds > FAILS_ABOVE and not listed:
        pytest.fail(f"{seconds:.0f} s of processor time: shorten it, or `make slow-tests`.", False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    if fixturedef.scope == "function":
        return (yield)
    start = _Clock()
    result = yield
    _SHARED[fixturedef] = start.seconds()
    request.config.stash[_SET_UP] = request.config.stash.get(_SET_UP, 0.0) + _SHARED[fixturedef]
    return result


def pytest_runtest_teardown(item):
    seconds = item.stash[_START].seconds() - item.config.stash.get(_SET_UP, 0.0)
    item.config.stash[_SET_UP] = 0.0
    definitions = item._fixtureinfo.name2fixturedefs  # not public, and there is no other way
    seconds += sum(_SHARED.get(fixtures[-1], 0.0) for fixtures in definitions.values())
    item.user_properties += [("node", item.nodeid), ("processor_seconds", f"{seconds:.2f}")]


class _Clock:
    """Processor time since it was made, of this process and of those that it started."""

    def __init__(self):
        self.time, self.processor = time.perf_counter(), _processor_seconds()

    def seconds(self):
        # A process that an earlier test left is counted when it is waited for, in any test.
        most = (time.perf_counter() - self.time) * os.cpu_count()
        return min(_processor_seconds() - self.processor, most)


_START = pytest.StashKey()
_SET_UP = pytest.StashKey()  # seconds of the shared fixtures that a test was the first to need
_SHARED = {}  # seconds of each shared fixture


def _processor_seconds():
    process = psutil.Process()
    seconds = 0.0
    for each in (process, *process.children(recursive=True)):  # the server of recipes goes on
        with contextlib.suppress(psutil.Error):
            seconds += sum(each.cpu_times()[:4])  # its own, and those of what it waited for
    return seconds


def slow_tests(seconds):
    """Return the names of slow tests, sorted, for {name: seconds of processor time}."""
    files, sweeps = collections.defaultdict(list), collections.defaultdict(list)
    for name in sorted(seconds, key=seconds.get):
        files[name.split("::")[0]].append(name)
        if "[" in name:
            sweeps[name.split("[")[0]].append(name)
    kept = {names[0] for names in files.values() if seconds[names[0]] <= FILE_LIMIT}
    kept |= {names[0] for names in sweeps.values() if seconds[names[0]] <= SWEEP_LIMIT}
    slow = seconds.keys() - kept
    slow = (name for name in slow if seconds[name] > limit_of(name))
    return sorted(name for name in slow if not name.startswith(CHAIN))


def limit_of(name):
    """Return the seconds above which a test is slow."""
    return next((s for place, s in FOLDER_LIMITS.items() if name.startswith(place)), LIMIT)


def read_seconds(path):
    """Return {test: seconds of processor time} of pytest's JUnit file."""
    cases = ET.parse(path).iter("testcase")
    properties = ({p.get("name"): p.get("value") for p in c.iter("property")} for c in cases)
    return {p["node"]: float(p["processor_seconds"]) for p in properties if "node" in p}


if __name__ == "__main__":
    names = slow_tests(read_seconds(sys.argv[1]))
    SLOW_TESTS.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{len(names)} slow tests in {SLOW_TESTS}.")
