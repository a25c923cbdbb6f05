"""Helpers to run recipes in separate processes."""

import signal
import subprocess
import sys


def recipe_command(name, flags):
    """Return the command that runs a recipe, a list of words.

    Args:
        name: name of the recipe.
        flags: a list of `--name=value`.
    """
    return [sys.executable, "-m", f"recipes.{name}", *flags]


def run_command(command, **options):
    """Run a command and return its exit status; on a stop signal, wait until it has saved.

    Ctrl-C reaches the command too. SIGTERM, which `kill` sends, is passed on to it. After either,
    the returned status is 130, that of a stopped recipe, whatever the command's own status.

    Args:
        command: a list of words.
        options: keyword arguments of `subprocess.Popen`.
    """
    process = subprocess.Popen(command, **options)
    asked = []

    def pass_on(number, frame):
        asked.append(number)
        process.terminate()

    previous = signal.signal(signal.SIGTERM, pass_on)
    try:
        status = process.wait()
    except KeyboardInterrupt:
        asked.append(signal.SIGINT)
        status = process.wait()
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 130 if asked else status
