"""Programs of the tests, which need a process of their own."""

import json
import os
import subprocess
import sys

from tests.conftest import ROOT


def found_by(program, folder):
    """What a program finds: the JSON that it writes to its argument, a file of `folder`.

    Args:
        program: its path below `tests/`.
        folder: to write into.
    """
    path = folder / "found.json"
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / program, path],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text())
