"""Operator profile of a .tflite file: time by kind of operator.

    python -m benchmarks.operator_profile --model=runs/export/model.tflite

LiteRT's Python has no profiler, but its library has one behind the C interface, which this calls.
That interface may change between versions, and a wrong call can crash a process. So the profile
is taken in a separate process, whose failure becomes an error of one sentence.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
import sys

import ai_edge_litert
from absl import flags
from ai_edge_litert.interpreter import Interpreter

from distill.runtime.associated_files import read_files
from recipes.shell import entry_point
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "The .tflite file.")
flags.DEFINE_integer("length", 32, "Tokens of a text, or as many as the file takes.", 1)
flags.DEFINE_integer("runs", 50, "Runs to profile.", 1)

# From LiteRT's C headers.
_CPU, _HOST_MEMORY, _WRITE = 1, 1, 1
_INT32, _FLOAT32 = 2, 1
# Event types: a whole run, or an operator, by the place where it runs.
_WHOLE, _PLACES = 1, {2: "LiteRT", 4: "XNNPACK", 8: "XNNPACK"}
_LONGEST = 60e6  # microseconds of an operator
_WARM_UP = 5


def profile_operators(path, length=32, runs=50):
    """Measure the time of each kind of operator in a run, on one thread.

    Args:
        path: of the file, with inputs (1, L) of whole numbers.
        length: L, tokens; at most the file's `max_length`.
        runs: of the file; times are means over the faster half of them.

    Returns:
        A dict of `length`, `ms` (a whole run, with the profiler on), `pieces` (the number of
        uninterrupted groups of operators in XNNPACK) and `operators`, a list of dicts with
        `operator`, `runs_in` ("XNNPACK" or "LiteRT"), `calls` (in a run) and `ms`, the longest
        first.

    Raises:
        InputError: if the file cannot be run, or this LiteRT has no profiler.
    """
    if not pathlib.Path(path).is_file():
        raise InputError(f"{path} does not exist; check the path.")
    with contextlib.suppress(InputError):  # files of other programs have no settings
        length = min(length, read_files(path)[0]["model_max_length"])
    code = "from benchmarks import operator_profile; operator_profile.print_profile()"
    command = [sys.executable, "-c", code, *map(str, (path, length, runs))]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.startswith("No profile: ")]
        why = lines[-1] if lines else "No profile: LiteRT ended the process."
        raise InputError(f"{path}: {why.removeprefix('No profile: ')}")
    return json.loads(process.stdout.splitlines()[-1])


def print_operators(profile, most=12):
    """Print a profile as a table of at most `most` rows."""
    inside = sum(row["ms"] for row in profile["operators"] if row["runs_in"] == "XNNPACK")
    share = inside / profile["ms"] if profile["ms"] else 0
    print(
        f"{profile['ms']:.3f} ms at {profile['length']} tokens, on one thread, with the profiler "
        f"on; {share:.0%} of it in XNNPACK, in {profile['pieces']} groups of operators"
    )
    for row in profile["operators"][:most]:
        share = row["ms"] / profile["ms"] if profile["ms"] else 0
        print(
            f"{row['ms']:9.3f} ms {share:6.1%} {row['calls']:6.0f} calls  {row['runs_in']:8}"
            f"{row['operator']}"
        )
    rest = profile["operators"][most:]
    if rest:
        print(f"{sum(row['ms'] for row in rest):9.3f} ms in {len(rest)} further kinds")


def summarise_events(events, length):
    """Compute the profile of `profile_operators` from events.

    Only the faster half of the runs counts: in the others the machine may have been busy for
    longer than all operators take.

    Args:
        events: (name, type, microseconds) tuples in LiteRT's order: a whole run, then its
            operators.
        length: tokens of each run.
    """
    runs = []
    for event in events:
        name, kind, _ = event
        if kind == _WHOLE and name == "Invoke":
            runs.append([event])
        elif kind in _PLACES and runs:
            runs[-1].append(event)
    runs.sort(key=lambda run: run[0][2])
    runs = runs[: (len(runs) + 1) // 2]
    totals, run_time, pieces = {}, 0, 0
    for (_, _, elapsed), *operators in runs:
        run_time, before = run_time + elapsed, None
        for name, kind, spent in operators:
            place = _PLACES[kind]
            # Adjacent XNNPACK operators run in one piece.
            pieces += place == "XNNPACK" != before
            before = place
            calls, total = totals.get((place, name), (0, 0))
            totals[place, name] = calls + 1, total + spent
    in_operators = sum(total for _, total in totals.values())
    totals["", "(between operators)"] = len(runs), max(run_time - in_operators, 0)
    count = len(runs)
    rows = [
        {"operator": name, "runs_in": place, "calls": calls / count, "ms": total / count / 1e3}
        for (place, name), (calls, total) in totals.items()
    ]
    rows.sort(key=lambda row: (-row["ms"], row["operator"]))
    return {
        "length": length,
        "ms": max(run_time, in_operators) / count / 1e3,
        "pieces": round(pieces / count),
        "operators": rows,
    }


class _Event(ctypes.Structure):
    """LiteRT's struct `ProfiledEventData`."""

    _fields_ = (
        ("tag", ctypes.c_char_p),
        ("event_type", ctypes.c_int32),
        ("start_us", ctypes.c_uint64),
        ("elapsed_us", ctypes.c_uint64),
        ("memory", ctypes.c_uint64 * 6),
        ("metadata", ctypes.c_uint64 * 2),
        ("source", ctypes.c_int32),
    )


class _TensorType(ctypes.Structure):
    """LiteRT's struct `LiteRtRankedTensorType`, without strides."""

    _fields_ = (
        ("element_type", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("dimensions", ctypes.c_int32 * 8),
        ("strides", ctypes.c_uint32 * 8),
    )


class _LiteRt:
    """LiteRT's C functions; a status other than 0 raises an OSError."""

    def __init__(self):
        folder = pathlib.Path(ai_edge_litert.__file__).parent
        self._library = ctypes.CDLL(str(next(folder.glob("libLiteRt.*"))))

    def __call__(self, name, *arguments):
        status = getattr(self._library, f"LiteRt{name}")(*arguments)
        if status:
            raise OSError(f"LiteRt{name} gave the status {status}")

    def create(self, name, *arguments):
        """Return the handle that a function writes to its last argument."""
        handle = ctypes.c_void_p()
        self(name, *arguments, ctypes.byref(handle))
        return handle


def _profile(path, length, runs):
    """Profile some runs, and return the events that `summarise_events` takes."""
    litert, size = _LiteRt(), ctypes.c_size_t
    environment = litert.create("CreateEnvironment", 0, None)
    model = litert.create("CreateModelFromFile", environment, os.fsencode(path))
    compiled = litert.create("CreateCompiledModel", environment, model, _options(litert))
    inputs, outputs = _count_tensors(path)
    dimensions = (ctypes.c_int * 2)(1, length)
    for i in range(inputs):
        tensor = (compiled, size(0), size(i))
        litert("CompiledModelResizeInputTensor", *tensor, dimensions, size(2))

    def buffer(side, index, element_type):
        name = f"GetCompiledModel{side}BufferRequirements"
        needs, count = litert.create(name, compiled, size(0), size(index)), size()
        litert("GetTensorBufferRequirementsBufferSize", needs, ctypes.byref(count))
        kind = _TensorType(element_type, 2, (1, count.value // 4))
        tensor_buffer = litert.create(
            "CreateManagedTensorBuffer", environment, _HOST_MEMORY, ctypes.byref(kind), count
        )
        if side == "Input":
            place = ctypes.c_void_p()
            litert("LockTensorBuffer", tensor_buffer, ctypes.byref(place), _WRITE)
            ones = (ctypes.c_int32 * (count.value // 4))(*[1] * (count.value // 4))
            ctypes.memmove(place, ones, ctypes.sizeof(ones))
            litert("UnlockTensorBuffer", tensor_buffer)
        return tensor_buffer

    input_buffers = (ctypes.c_void_p * inputs)(
        *(buffer("Input", i, _INT32) for i in range(inputs))
    )
    output_buffers = (ctypes.c_void_p * outputs)(
        *(buffer("Output", i, _FLOAT32) for i in range(outputs))
    )

    def run():
        buffers = size(inputs), input_buffers, size(outputs), output_buffers
        litert("RunCompiledModel", compiled, size(0), *buffers)

    profiler = litert.create("CompiledModelGetProfiler", compiled)
    if not profiler:
        raise OSError("it was built without a profiler")
    for _ in range(_WARM_UP):
        run()
    litert("StartProfiler", profiler)
    for _ in range(runs):
        run()
    litert("StopProfiler", profiler)
    count = ctypes.c_int()
    litert("GetNumProfilerEvents", profiler, ctypes.byref(count))
    events = (_Event * count.value)()
    litert("GetProfilerEvents", profiler, count, events)
    timed = [e for e in events if e.event_type in (_WHOLE, *_PLACES)]
    # If the struct had changed, these numbers would be addresses or timestamps.
    if not timed or max(e.elapsed_us for e in timed) > _LONGEST:
        raise OSError("its events have another layout")
    return [((e.tag or b"").decode(), e.event_type, e.elapsed_us) for e in timed]


def _options(litert):
    """Return options for compilation for the CPU, with a profiler."""
    options = litert.create("CreateOptions")
    litert("SetOptionsHardwareAccelerators", options, _CPU)
    libc = ctypes.CDLL(None)
    libc.strdup.restype = ctypes.c_void_p
    text = ctypes.c_void_p(libc.strdup(b"enable_profiling = true\n"))
    free = ctypes.cast(libc.free, ctypes.c_void_p)
    profiling = litert.create("CreateOpaqueOptions", b"runtime_options_string", text, free)
    litert("AddOpaqueOptions", options, profiling)
    return options


def _count_tensors(path):
    """Return the number of inputs and of outputs of the first signature."""
    signatures = Interpreter(str(path)).get_signature_list()
    first = next(iter(signatures.values()))
    return len(first["inputs"]), len(first["outputs"])


def print_profile():
    """Print the profile of the process' arguments (path, length, runs) as JSON."""
    path, length, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        events = _profile(path, length, runs)
    except (OSError, AttributeError, ValueError, StopIteration) as e:
        sys.exit(f"No profile: this version of LiteRT gives no profile of it ({e}).")
    print(json.dumps(summarise_events(events, length)))


def main():
    print_operators(profile_operators(FLAGS.model, FLAGS.length, FLAGS.runs))


if __name__ == "__main__":
    flags.mark_flag_as_required("model")
    entry_point.run(main)
