"""What is written to standard error while LiteRT's notices are left out."""

import os
import subprocess
import sys

import pytest

from tfnlp.utils.native_notices import without_notices

LINES = """INFO: [environment.cc:36] Creating LiteRT environment with options
a line of another thread
WARNING: [npu_registry.cc:34] NPU accelerator could not be loaded
ERROR: [litert/compiler/plugin/compiler_plugin.cc:259]
└ Could not load shared library
INFO: Created TensorFlow Lite XNNPACK delegate for CPU.
W0000 00:00:1795642804.349297    9625 tf_tfl_flatbuffer_helpers.cc:364] Ignored output_format.
W0000 00:00:1795642804.349297    9625 kernels.cc:364] A warning
INFO: of an application
"""


def test_only_notices_are_left_out(capfd):
    with pytest.raises(ValueError, match="raised within"), without_notices():
        os.write(2, LINES.encode())
        raise ValueError("raised within")
    os.write(2, b"after\n")
    expected = (
        "a line of another thread\n"
        "W0000 00:00:1795642804.349297    9625 kernels.cc:364] A warning\n"
        "INFO: of an application\nafter\n"
    )
    assert capfd.readouterr().err == expected
    with without_notices(), without_notices(wait=False):
        os.write(2, LINES.encode())
    assert capfd.readouterr().err == expected.removesuffix("after\n")


def test_names_of_packages_load_without_the_notices_of_tensorflow():
    code = "from tfnlp.models import build_model; import tensorflow; tensorflow.ones(1)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stderr == ""


THREADS = """
import concurrent.futures, os, sys
from tfnlp.utils.native_notices import without_notices

def write(number):
    with without_notices():
        if sys.stderr:
            os.write(2, f"{number} ".encode())

with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(write, range(200)))
print("end", file=sys.stderr)
"""


@pytest.mark.parametrize("closed", [False, True])
def test_threads_do_not_lose_standard_error(closed):
    command = f"exec {sys.executable} -c '{THREADS}'" + " 2>&-" * closed
    done = subprocess.run(command, check=True, shell=True, capture_output=True, text=True)
    expected = [] if closed else [*sorted(map(str, range(200))), "end"]
    assert sorted(done.stderr.split()) == expected
