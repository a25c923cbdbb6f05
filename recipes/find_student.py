"""Finds the best student of a teacher that a phone can bear, distils it and writes its file.

    python -m recipes.find_student --teacher_dir=runs/teacher/best --train=train.tsv \\
        --dev=dev.tsv --latency_ms=0.6 --size_mb=12 --output_dir=runs/order

Of an embedder --train has texts alone, and --dev pairs of --text_column and --pair_column.

One supernet is distilled, whose parts are students: some of its layers, of its heads, units and
tokens the most important. Files of such parts are timed on this machine, or on a phone (see
measure_students). Then students within the budget are tried on --dev; the best is distilled to its
end. OUTPUT_DIR/search.html shows all that were tried, and OUTPUT_DIR/students/ has the
winner's run and its model.tflite. The same command resumes; with another budget it takes the same
supernet. --quick does all of it in a fraction of the time. OUTPUT_DIR/starts/ has the winner as it
was before its training, for --student_dir of a distillation of whole texts with other settings.
"""

import dataclasses
import pathlib

from absl import flags, logging

from distill import search
from recipes.flags import dataclass_flags, student_space_flags, training_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group, no_effect, refuse_beside
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json, write_text

FLAGS = flags.FLAGS
student_space_flags.define_flags()
training_flags.define_training_flags(epochs=4, learning_rate=1e-4)
with group("Search"):
    dataclass_flags.define(search.Budget)
    flags.DEFINE_string(
        "cost_table",
        None,
        "Table of measure_students with times of another device; measured here if not given.",
    )
    flags.DEFINE_bool("quick", False, "Train shorter and try fewer, where no flag says otherwise.")
    flags.DEFINE_integer(
        "supernet_epochs", None, "Epochs of the supernet; 4, or 2 with --quick, if not given.", 1
    )
    flags.DEFINE_integer(
        "candidates", None, "Students to try; 200, or 40 with --quick, if not given.", 1
    )
FLAGS["epochs"].help = "Epochs of the winner."
# Flags that may change between runs of one supernet and one student.
FREE = {"latency_ms", "size_mb", "cost_table", "quick", "candidates", "supernet_epochs", "epochs"}
FREE |= {"num_layers", "num_heads", "intermediate_dim", "keep_tokens", "tokens"}
FREE |= {"quantization", "fixed_lengths", "fixed_only"}


def main():
    if FLAGS.latency_ms is None and FLAGS.size_mb is None:
        raise InputError("Give a budget: `latency_ms`, `size_mb` or both.")
    for name in ("strategy", "xla", "gradient_checkpointing"):
        if FLAGS[name].present:
            raise no_effect(name, "on a supernet, which one device trains step by step")
    if FLAGS.max_steps is not None:
        refuse_beside(["supernet_epochs"], f"max_steps={FLAGS.max_steps}, of each training")
    lengths = {"supernet_epochs": (4, 2), "candidates": (200, 40)}
    supernet_epochs, count = (
        FLAGS[name].value or default[FLAGS.quick] for name, default in lengths.items()
    )
    folder = pathlib.Path(FLAGS.output_dir)
    config = training_flags.start_training()
    finder = student_space_flags.start_finder(start_run)
    if FLAGS.accumulation_steps > 1 and not finder.task.labelled:
        raise InputError(
            f"accumulation_steps={FLAGS.accumulation_steps} compares the texts of a part of a "
            "batch only, but an embedder learns from all of it; leave it out."
        )
    fewest = finder.space.num_layers[0]
    if FLAGS.freeze_layers > fewest:
        raise InputError(
            f"freeze_layers={FLAGS.freeze_layers} is more than the {fewest} of the smallest "
            "student; give fewer, or higher `num_layers` to try."
        )
    supernet_config = dataclasses.replace(config, epochs=supernet_epochs)
    finder.supernet_run(supernet_config)  # refuses another run before long work
    logging.info("Step 1 of 4: the costs of students.")
    table = finder.read_costs(FLAGS.cost_table) if FLAGS.cost_table else finder.measure()
    finder.check_budget(table)
    facts = [table.describe()]
    logging.info("%s", facts[0])
    logging.info("Step 2 of 4: the supernet.")
    model = finder.train_supernet(supernet_config)
    logging.info("Step 3 of 4: the search of %d students.", count)
    tried = finder.search(model, table, count, FLAGS.seed)
    metric = finder.task.monitor
    write_text(folder / "search.html", search.page(tried, finder.budget, metric, facts))
    logging.info("%s", search.reason(tried, metric))
    logging.info("Step 4 of 4: the winner alone.")
    run, tokenizer, figures = finder.finish(model, tried[0].student, config)
    path, costs = finder.export(run, tokenizer)
    facts.append(scores_of(figures, metric))
    facts.append(
        f"{path} takes {costs} on this machine, predicted {tried[0].latency_ms:.2f} ms, "
        f"{tried[0].size_mb:.1f} MB on {table.setting.device}."
    )
    facts += search.beyond(finder.budget, costs, timed_elsewhere=bool(FLAGS.cost_table))
    write_text(folder / "search.html", search.page(tried, finder.budget, metric, facts))
    write_json(
        folder / "search.json",
        {"student": dataclasses.asdict(tried[0]), "measured": dataclasses.asdict(costs)}
        | {"file": str(path), "figures": figures},
    )
    print(*facts, sep="\n")


def scores_of(figures, metric):
    """Return a sentence on the scores among the figures of a student's distillation."""
    names = [split for split in ("dev", "test") if f"{split}_{metric}" in figures]
    scores = [
        f"{figures[f'{x}_{metric}']:.4f} on {x} (teacher {figures[f'teacher_{x}_{metric}']:.4f})"
        for x in names
    ]
    return f"Trained to its end, its {metric} is {' and '.join(scores)}."


def start_run(name, decisive):
    """Return the `RunFolder` of a subfolder; `decisive` is what its result depends on too."""
    flags_of_run = {k: v for k, v in training_flags.decisive_flags().items() if k not in FREE}
    files = ("model.tflite",)
    return training_flags.run_folder(flags_of_run | decisive, files=files, folder=name)


if __name__ == "__main__":
    entry_point.run(main)
