"""Time from the start of a fine-tuning's process to the end of its first step.

    python -m benchmarks.first_step --model_dir=MINILM --train=train.tsv --dev=dev.tsv \\
        --output_dir=runs/first_step

Runs recipes.finetune_classifier with a line of metrics for each step, and stops it at the first
line. Prints the medians of --runs, by the clock and of all cores, which other programs disturb
less.
"""

import pathlib
import statistics
import subprocess
import time

import psutil
from absl import flags

from recipes.shell import entry_point
from recipes.shell.subprocesses import recipe_command

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Hugging Face folder.")
flags.DEFINE_string("train", None, "Training file.")
flags.DEFINE_string("dev", None, "Dev file.")
flags.DEFINE_string("output_dir", None, "Folder of the run.")
flags.DEFINE_integer("runs", 3, "Processes to start, one after the other.", 1)
flags.mark_flags_as_required(["model_dir", "train", "dev", "output_dir"])


def main():
    taken = [first_step() for _ in range(FLAGS.runs)]
    for seconds, cores in taken:
        print(f"{seconds:.1f} s by the clock, {cores:.1f} of all cores")
    medians = map(statistics.median, zip(*taken, strict=True))
    print("medians: {:.1f} s by the clock, {:.1f} of all cores".format(*medians))


def first_step():
    """Return the seconds to the end of the first step, by the clock and of all cores."""
    metrics = pathlib.Path(FLAGS.output_dir) / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    names = "model_dir", "train", "dev", "output_dir"
    words = [f"--{name}={FLAGS[name].value}" for name in names]
    start = time.perf_counter()
    command = recipe_command("finetune_classifier", [*words, "--log_steps=1", "--overwrite"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while not (metrics.exists() and metrics.stat().st_size):
            if process.poll() is not None:
                raise SystemExit(process.stdout.read().decode())
            time.sleep(0.01)
        seconds, times = time.perf_counter() - start, psutil.Process(process.pid).cpu_times()
        process.kill()
    return seconds, times.user + times.system


if __name__ == "__main__":
    entry_point.run(main)
