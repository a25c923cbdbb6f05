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

    Ctrl-C reaches the command too; SIGTERM, which `kill` sends, is passed on.

    Args:
        command: a list of words.
        options: as `subprocess.Popen` takes them.
    """
    process = subprocess.Popen(command, **options)
    previous = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        return process.wait()
    except KeyboardInterrupt:
        return process.wait()
    finally:
        signal.signal(signal.SIGTERM, previous)
