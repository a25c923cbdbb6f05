"""Runs a table of variants of recipes, and compares their metrics.

    python -m recipes.sweep --sweep=losses.yaml --output_dir=runs/losses

where losses.yaml (or .json) says

    recipe: distill_classifier
    flags: {teacher_dir: runs/teacher/best, train: train.tsv, dev: dev.tsv,
            cache_dir: "{sweep}/{variant}/cache"}
    seeds: [0, 1, 2]
    variants:
      soft:   {}
      hidden: {hidden_state_weight: 1}

Each run is a process with the folder OUTPUT_DIR/VARIANT/seed_N/STEP and its output in a .log
beside it. All flags are checked before anything runs. The same command resumes a killed sweep:
finished runs are not repeated. Variants and seeds may be added later. Instead of recipe and flags,
the file or a variant may have steps, which run one after the other; a variant's flags are then
those of the first step, and those of others stand below their recipe. A variant may start from the
output of one before it, so that shared steps run once:

    steps:
      - recipe: export_tflite
        flags: {model_dir: "{sweep}/student/seed_{seed}/distill_classifier/best"}
    variants:
      student: {steps: [{recipe: distill_classifier, flags: {...}}]}
      int8:    {}
      float:   {quantization: float32}

In flags {run} is the run's folder, {sweep} the sweep's folder, {variant} the variant's name,
{seed} the seed and {fold} the fold, such as 2/5; an empty value leaves a flag at its default. The
table shows the mean of each figure over the seeds with its standard error, and the difference to
the base (base: NAME, else the first variant), paired by seed; metrics: [...] selects the figures.
It covers finished runs only, and marks figures that are no number, such as NaN. OUTPUT_DIR gets
table.tsv, runs.tsv and variants.png.

With `folds: 5` in place of seeds and of dev, a classifier is evaluated on each of 5 folds of its
training file, and the table has the means over folds.
"""

import sys

from absl import flags

from recipes.shell import entry_point
from recipes.sweeps.sweep_file import check_sweep, read_sweep
from recipes.sweeps.sweep_runs import check_runs, run_sweep
from recipes.sweeps.sweep_table import write_table

FLAGS = flags.FLAGS
flags.DEFINE_string("sweep", None, "YAML or JSON file of the variants.")
flags.DEFINE_string(
    "output_dir", None, "Folder of all runs; the same command resumes a killed sweep."
)
flags.DEFINE_bool("table_only", False, "Only print the table of finished runs.")
flags.mark_flags_as_required(["sweep", "output_dir"])


def main():
    sweep = check_sweep(read_sweep(FLAGS.sweep), with_files=not FLAGS.table_only)
    if FLAGS.table_only:
        check_runs(sweep, FLAGS.output_dir)
        failed = []
    else:
        failed = run_sweep(sweep, FLAGS.output_dir)
    write_table(sweep, FLAGS.output_dir)
    if failed:
        sys.exit(f"Error: {len(failed)} runs failed: {'; '.join(failed)}; see the warnings above.")


if __name__ == "__main__":
    entry_point.run(main)
