"""Recipes that run other recipes, each in a process of its own."""

import signal
import subprocess
import sys


def recipe_command(name, flags):
    """The command of a recipe.

    Args:
        name: of the recipe.
        flags: as on a command line, a list of `--name=value`.
    """
    return [sys.executable, "-m", f"recipes.{name}", *flags]


def run_command(command, **options):
    """The exit status of a command; one that is asked to stop gets the time to save.

    Ctrl-C reaches the command too; SIGTERM, which `kill` sends, is passed on. After either the
    status is 130, as it is of a recipe that stopped, however the command took it.

    Args:
        command: a list of words.
        options: as `subprocess.Popen` takes them.
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
