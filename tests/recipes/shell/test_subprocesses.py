import os
import signal
import sys
import threading
import time

import pytest

from recipes.shell.subprocesses import run_command


def ask_to_stop(path):
    while not path.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("handles", [True, False])
def test_a_command_that_was_asked_to_stop_has_stopped(handles, tmp_path):
    # A command that dies of the signal, and one that saves and ends as if nothing had been.
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))" if handles else ""
    code = f"import pathlib, signal, sys, time\n{handler}\n"
    code += f"pathlib.Path({str(tmp_path / 'runs')!r}).touch()\ntime.sleep(60)\n"
    threading.Thread(target=ask_to_stop, args=[tmp_path / "runs"]).start()
    before = signal.getsignal(signal.SIGTERM)
    assert run_command([sys.executable, "-c", code]) == 130
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_ends_with_its_own_status():
    assert run_command([sys.executable, "-c", "raise SystemExit(3)"]) == 3
