"""Share of small faults in the product that its tests notice.

    make mutants                                   # 120 mutants, all but the slow tests
    python -m tests.mutants --slow                 # the slow tests too, on those that live

Places in `tfnlp`, `distill` and `recipes` are drawn by a seed, and Cosmic Ray changes each: an
operator, a comparison, a number, a condition, a loop, a decorator. Each mutant gets the tests of
its room: first those of its module, then those of its folder. It is dead if one of them fails or
does not end, and passes on the code as it is. Results are added to a file of JSON lines; the same
command goes on where it stopped.
"""

import argparse
import concurrent.futures
import contextlib
import difflib
import functools
import json
import multiprocessing
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("tfnlp", "distill", "recipes")
# Rooms that are compared with other libraries in a room of tests of its own.
COMPARED = ("checkpoints", "configs", "functional", "layers", "models")
# Seconds of the processor and of the clock for a test, and bytes of its process, above which a
# mutant has not ended.
SECONDS, CLOCK, BYTES = 240, 1200, 12 * 2**30


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=120, help="mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow", action="store_true", help="run the slow tests too")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/mutants.jsonl")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.touch()
    results = [json.loads(line) for line in options.output.read_text().splitlines()]
    results = {result["mutant"]: result for result in results}
    mutants = draw(options.count, options.seed)
    left = []
    for *place, name in mutants:
        result = results.get(name, {"mutant": name, "test": None, "slow": None})
        if result["test"] is None and (result["slow"] is None or options.slow > result["slow"]):
            left.append((*place, result, options.slow))
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ProcessPoolExecutor(
            options.processes, mp_context=spawn, initializer=prepare, initargs=(folder,)
        ) as pool,
    ):
        tasks = [pool.submit(run, *task) for task in left]
        for number, task in enumerate(concurrent.futures.as_completed(tasks), 1):
            result = task.result()
            results[result["mutant"]] = result
            with options.output.open("a") as file:
                file.write(json.dumps(result) + "\n")
            print(f"{number} of {len(left)}:", line(result), flush=True)
    living = [result for *_, name in mutants if (result := results[name])["test"] is None]
    print(f"\n{len(mutants) - len(living)} of {len(mutants)} mutants are dead. Living:\n")
    print("\n".join(line(result) for result in living))


def line(result):
    return f"{'dead ' if result['test'] else 'lives'} {result['mutant']}"


def draw(count, seed):
    """Return (path, mutated code, description) of mutants, each in a line of its own."""
    from cosmic_ray import mutating

    paths = [p for n in PACKAGES for p in sorted((ROOT / n).rglob("*.py")) if p.stem[0] != "_"]
    codes = {path: path.read_text(encoding="utf-8") for path in paths}
    sizes = [code.count("\n") for code in codes.values()]
    rng, mutants = random.Random(seed), {}
    while len(mutants) < count:
        path = rng.choices(paths, sizes)[0]
        places = list(changes(codes[path]).values())
        if not places:
            continue
        mutated = mutating.mutate_code(codes[path], *rng.choice(rng.choice(places)))
        name = path.relative_to(ROOT)
        before, after = (code.splitlines() for code in (codes[path], mutated))
        number = next(i for i, (a, b) in enumerate(zip(before, after)) if a != b) + 1  # noqa: B905
        lines = [d for d in difflib.ndiff(before, after) if d[:2] in ("- ", "+ ")]
        text = " -> ".join(line[2:].strip() for line in lines)
        mutants.setdefault((path, number), (str(name), mutated, f"{name}:{number}: {text}"))
    return list(mutants.values())


@functools.cache
def changes(code):
    """Return {(line, column): [(operator, number of the change among all of the operator's)]}."""
    from cosmic_ray import ast, plugins

    nodes, places = list(ast.ast_nodes(ast.get_ast(code))), {}
    for cls in map(plugins.get_operator, plugins.operator_names()):
        if cls.arguments():
            continue
        spans = (span for node in nodes for span in cls().mutation_positions(node))
        for number, (start, _) in enumerate(spans):
            places.setdefault(start, []).append((cls(), number))
    return places


def prepare(folder):
    """Copy the product and its tests for a worker, and load what all tests need."""
    copy = pathlib.Path(tempfile.mkdtemp(dir=folder))
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    os.chdir(copy)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy))
    os.environ["PYTHONPATH"] = str(copy)
    os.environ.setdefault("TFNLP_DATA", str(ROOT.parent / "shared/data"))
    import keras  # noqa: F401


def run(name, mutated, result, slow):
    """Return the result of a mutant of the module at a path: the test that notices it, or None."""
    path = pathlib.Path(name)
    code = path.read_text(encoding="utf-8")
    paths, test = tests(path), None
    # What was run before and noticed nothing is not run again.
    selections = ["not slow", "slow"][result["slow"] is not None : 1 + slow]
    for selection in selections if paths else ():
        path.write_text(mutated, encoding="utf-8")
        test = failing_test(paths, selection)
        path.write_text(code, encoding="utf-8")
        if test and not failing_test([test], selection):
            break
        test = None
    return {**result, "test": test, "slow": slow}


def tests(path):
    """Return the tests of the module at a path and of its room, the nearest first."""
    parts = path.parts[1:] if path.parts[0] == "tfnlp" else path.parts
    folder = pathlib.Path("tests", *parts[:-1])
    room = pathlib.Path("tests", *parts[: min(len(parts) - 1, 1 + (parts[0] == "distill"))])
    nearest = [folder / f"test_{path.stem}.py", folder, room]
    if parts[0] in COMPARED:
        nearest.append(pathlib.Path("tests/parity"))
    return [str(p) for p in dict.fromkeys(nearest) if p.exists() and p != pathlib.Path("tests")]


def failing_test(paths, selection):
    """Return the first test that fails, or a file that cannot be collected, or None.

    Each path in a process of its own: to collect a room takes longer than most of its tests.
    """
    failures = (failing_test_of(p, paths[:i], selection) for i, p in enumerate(paths))
    return next(filter(None, failures), None)


def failing_test_of(path, done, selection):
    """Return the first test of a path that fails, without those of the paths before, or None."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=test, args=(path, done, selection, sender))
    child.start()
    sender.close()
    started = path
    with contextlib.suppress(EOFError):
        while child.is_alive() or receiver.poll():  # what the tests start may keep the pipe open
            started = receiver.recv() if receiver.poll(1) else started
    child.join()
    return started if child.exitcode not in (0, 5) else None  # 5: no tests


def test(path, done, selection, sender):
    """Run the tests of a path until one fails, and end the process with pytest's status."""
    import pytest

    class Sender:
        def pytest_runtest_logstart(self, nodeid):
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process
            sender.send(nodeid)

        def pytest_collectreport(self, report):
            if report.failed:
                sender.send(report.nodeid)

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    options = ["-x", "-n0", "-pno:cacheprovider", f"--timeout={CLOCK}"]
    options += ["--timeout-method=thread", "-m", selection, *(f"--ignore={p}" for p in done)]
    os._exit(pytest.main([*options, path], plugins=[Sender()]))


if __name__ == "__main__":
    main()
