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

Each run is a process of its own, in OUTPUT_DIR/VARIANT/seed_N/STEP, with its output in a .log
beside that. All flags are checked before anything runs. A sweep that was killed goes on where it
was: finished runs are not repeated, a broken one resumes. More variants and seeds may be added
later. Instead of recipe and flags there may be steps, of the file or of a variant, one after the
other. A variant may go on from one before it, so that what they share is trained once:

    steps:
      - recipe: export_tflite
        flags: {model_dir: "{sweep}/student/seed_{seed}/distill_classifier/best"}
    variants:
      student: {steps: [{recipe: distill_classifier, flags: {...}}]}
      int8:    {}
      float:   {quantization: float32}

In flags {run} is the run's folder, {sweep} that of the sweep, {variant} the variant's name and
{seed} the seed; an empty value leaves a flag at its default. The table shows the mean of each
figure over the seeds with its standard error, and the difference to the base (base: NAME, else the
first variant), paired by seed; metrics: [...] names the figures. It is of finished runs alone, and
says where a run has no number, such as NaN. OUTPUT_DIR gets table.tsv, runs.tsv and variants.png.
"""

import sys

from absl import flags

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("sweep", None, "The file of variants, .yaml or .json.")
flags.DEFINE_string("output_dir", None, "Folder of all runs; a killed sweep goes on from it.")
flags.DEFINE_bool("table_only", False, "Run nothing; print the table of what is finished.")
flags.mark_flags_as_required(["sweep", "output_dir"])


def main():
    from recipes.sweep_file import check_sweep, read_sweep
    from recipes.sweep_runs import check_runs, run_sweep
    from recipes.sweep_table import write_table

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
    common.run(main, tensorflow=False)
