"""Entry point of the recipes: one-sentence errors, plain logs, and TensorFlow when needed."""

import contextlib
import ctypes
import errno
import io
import os
import pathlib
import re
import shlex
import sys
import tempfile
from logging import getLogger

from absl import app, flags, logging

from recipes.shell.command_line import fail, parse, pipe_may_close
from recipes.shell.input_checks import check_columns, check_files, with_column_flag
from tfnlp.utils.errors import InputError
from tfnlp.utils.native_notices import without_notices

FLAGS = flags.FLAGS
# Packages that TensorFlow and Keras load if installed, a third of the time of their import, for
# what no recipe uses: JAX for TFLite, pictures of Keras, its models for scikit-learn.
UNUSED_PEERS = ("jax", "matplotlib", "sklearn")
# Modules of tfnlp's requirements that `runtime/training.txt` does not install.
NOT_FOR_TRAINING = ("ai_edge_litert", "kagglehub", "keras_hub", "psutil", "tensorflow_text")
NOT_FOR_TRAINING += ("tensorflow_model_optimization",)
# What writing raises on a full disk, and above a limit of a user or a process.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# glibc's `mallopt` constants.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def run(main):
    """Run a recipe's `main()`; report bad input and Ctrl-C in one sentence, without a traceback.

    `main` checks its flags and reads its files first, before TensorFlow, which takes seconds to
    import.
    """
    escape_unprintable()
    with pipe_may_close():
        app.run(lambda _: run_main(main), flags_parser=parse)


def escape_unprintable():
    """Write characters that the console's encoding lacks as escapes, such as \\u20ac.

    Otherwise an answer with one ends the run. Encodings are cp949 of Korean Windows, or ASCII.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def run_main(main):
    """Check the files that flags name, and run `main()`; exit with status 2 for bad input."""
    logging.set_verbosity(logging.INFO)
    logging.get_absl_handler().setFormatter(_PlainFormatter())
    getLogger("httpx2").setLevel(logging.WARNING)  # of the Hub, which tells each request
    try:
        check_files()
        check_columns()
        main()
    except InputError as e:
        fail(with_flags(with_column_flag(e), FLAGS))
    except ModuleNotFoundError as e:
        if e.name not in NOT_FOR_TRAINING:
            raise
        fail(
            f"{e.name} is not installed, which this needs; `pip install .` in the clone installs "
            "it beside what trains alone."
        )
    except Exception as e:
        message = exhaustion(e)
        if message is None:
            raise
        print(f"Error: {message}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(2)  # without memory TensorFlow may hang where Python ends
    except KeyboardInterrupt:
        print(f"Stopped; to go on from what is saved: {resuming_command()}", file=sys.stderr)
        sys.exit(130)


def full_disk(reason, path="A file"):
    """Return the sentence for a file that the disk or a limit did not take."""
    return (
        f"{path} could not be written ({reason}); free space in the output folder and in "
        f"{tempfile.gettempdir()}, or set TMPDIR to another."
    )


def exhaustion(error):
    """Return the sentence for ended memory or a full disk, the error or its cause; else None."""
    if isinstance(error, OSError) and error.errno in FULL:
        return full_disk(error.strerror, error.filename or "A file")
    of_tensorflow = type(error).__module__.startswith("tensorflow.")
    for reason in map(os.strerror, FULL if of_tensorflow else ()):
        if reason in str(error):
            return full_disk(reason)
    of_memory = type(error).__name__ in ("MemoryError", "ResourceExhaustedError")
    if not of_memory and getattr(error, "errno", None) != errno.ENOMEM:
        context = None if error.__suppress_context__ else error.__context__
        cause = error.__cause__ or context
        return cause and exhaustion(cause)
    names = [f"`{name}`" for name in ("batch_size", "max_length") if name in FLAGS]
    message = f"Memory ran out; lower {' or '.join([*names, 'what else runs here'])}."
    return with_flags(f"{message} Files written before are untouched.", FLAGS)


def load_tensorflow():
    """Import TensorFlow without its notices and peers, and keep the memory that it frees."""
    keep_freed_memory()
    with without_notices(), without_packages(UNUSED_PEERS):
        import keras  # noqa: F401
        import tensorflow  # noqa: F401


@contextlib.contextmanager
def without_packages(names):
    """Make imports of packages that are not loaded yet fail temporarily."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def keep_freed_memory():
    """Make glibc keep freed memory for later use; do nothing without glibc.

    By default glibc maps blocks above 32 MB, such as the gradient of a token table, at each step
    and unmaps them again. The system then clears all their pages each time.
    """
    # Other C libraries lack `mallopt`, and `CDLL(None)` fails on Windows.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def resuming_command():
    """Return this recipe's shell command without --overwrite, which would delete its run."""
    path = pathlib.Path(sys.argv[0])  # in recipes/ or benchmarks/
    words = [word for word in sys.argv[1:] if word.lstrip("-").partition("=")[0] != "overwrite"]
    return shlex.join(["python", "-m", f"{path.parent.name}.{path.stem}", *words])


def with_flags(message, names):
    """Return a library message with its arguments written as flags: `--max_length=5`.

    Args:
        message: text that names arguments before an equals sign or in backticks.
        names: flag names.
    """

    def flag(match):
        name = match[1] or match[2]
        return f"--{name}" if name in names else match[0]

    # Whole words only, not parts of a path.
    return re.sub(r"(?<![^\s(])(?:(\w+)(?==)|`(\w+)`)", flag, message)


class _PlainFormatter(logging.PythonFormatter):
    """Log formatter without date and source location, which a shell user does not need."""

    def format(self, record):
        prefix = "" if record.levelno < logging.converter.STANDARD_WARNING else "Warning: "
        return prefix + with_flags(record.getMessage(), FLAGS)
