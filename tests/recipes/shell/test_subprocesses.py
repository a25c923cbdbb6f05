import os
import signal
import sys
import threading
import time

import pytest

from recipes.shell.subprocesses import run_command


def ask_to_stop(path, number):
    while not path.exists() or not path.read_text():
        time.sleep(0.01)
    if number == signal.SIGINT:  # Ctrl-C reaches the whole group, `kill` one process
        os.kill(int(path.read_text()), number)
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("handles", [True, False])
def test_a_command_that_was_asked_to_stop_has_stopped(handles, number, tmp_path):
    """A command that dies of the signal, and one that saves and ends as if nothing had been."""
    code = "import os, pathlib, signal, sys, time\n"
    if handles:
        code += "def save(*_):\n    time.sleep(0.6)\n    pathlib.Path('saved').touch()\n"
        code += f"    sys.exit(0)\nsignal.signal({number:d}, save)\n"
    code += "pathlib.Path('runs').write_text(str(os.getpid()))\ntime.sleep(60)\n"
    threading.Thread(target=ask_to_stop, args=[tmp_path / "runs", number]).start()
    before = signal.getsignal(signal.SIGTERM)
    assert run_command([sys.executable, "-c", code], cwd=tmp_path) == 130
    assert signal.getsignal(signal.SIGTERM) is before
    assert (tmp_path / "saved").exists() == handles


def test_a_command_ends_with_its_own_status():
    assert run_command([sys.executable, "-c", "raise SystemExit(3)"]) == 3
