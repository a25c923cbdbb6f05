"""Recipes as programs of their own, without importing TensorFlow for each anew."""

import gc
import importlib
import json
import os
import pathlib
import runpy
import subprocess
import sys

RECIPES = pathlib.Path(__file__).parents[2] / "recipes"


def command(recipe, *flags):
    """Return the command of a recipe in a new Python."""
    return [sys.executable, str(RECIPES / f"{recipe}.py"), *map(str, flags)]


class Shell:
    """Runs recipes in processes forked from one that has imported what they import.

    A recipe sees what it sees in a shell: its own `__main__`, arguments, flags, streams and exit
    status. The forked process has run nothing of TensorFlow yet. Close it after use.
    """

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd="/",
        )

    def run(self, recipe, flags, folder):
        """The finished recipe, as `subprocess.run` gives it; its streams go by `folder`."""
        command = [str(RECIPES / f"{recipe}.py"), *map(str, flags)]
        streams = [str(folder / name) for name in ("stdout", "stderr")]
        self.process.stdin.write(json.dumps([command, streams]) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        output = [pathlib.Path(path).read_text(encoding="utf-8") for path in streams]
        return subprocess.CompletedProcess(command, status, *output)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve():
    """Runs the command of each line of standard input, and says its status."""
    import_all()
    # Else each process looks through, and so copies, all that is imported: 1.8 s at its end.
    gc.freeze()
    for line in sys.stdin:
        command, streams = json.loads(line)
        child = os.fork()
        if child == 0:
            for number, path in enumerate(streams, 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.argv = command
            sys.path[0] = os.path.dirname(command[0])
            runpy.run_path(command[0], run_name="__main__")
            sys.exit()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def import_all():
    """Load what recipes use, which packages load when asked."""
    for name in ("tfnlp.checkpoints", "tfnlp.objectives", "tfnlp.tasks", "tfnlp.training"):
        load(name)
    for name in ("export", "learning", "reports", "runtime"):
        load(f"distill.{name}")


def load(name):
    package = importlib.import_module(name)
    for attribute in package.__all__:
        getattr(package, attribute)


if __name__ == "__main__":
    serve()
