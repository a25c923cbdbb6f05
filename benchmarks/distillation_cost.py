"""Overhead of distillation over the passes of teacher and student.

    python -m benchmarks.distillation_cost --output_dir=runs/distillation_cost

A step of training a 3-layer BERT from a 6-layer one (MiniLM's sizes, random weights and tokens),
in one process: the student alone, the teacher's pass alone, a step with the teacher, and one with
precomputed teacher outputs. Prints the time of distillation over that of (teacher + student
alone), and with precomputed outputs over that of the student alone, by the clock and by the time
of all cores, which other programs disturb less. Rounds alternate, a turn being a few steps;
figures are medians of the rounds.
"""

import time

import numpy as np
from absl import flags

from recipes.flags import distillation_flags
from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write distillation_cost.json into.")
flags.DEFINE_enum(
    "method", "logits", list(distillation_flags.METHOD_NAMES), "What the student learns from."
)
flags.DEFINE_integer("batch_size", 32, "Examples in a batch.", 1)
flags.DEFINE_integer("length", 32, "Tokens of each.", 3)
flags.DEFINE_integer("steps", 8, "Steps in a turn.", 1)
flags.DEFINE_integer("rounds", 15, "Turns of each.", 1)
flags.mark_flag_as_required("output_dir")

ALONE, TEACHER, DISTILLED, KNOWN = "student alone", "teacher's pass", "distilling", "known outputs"


def main():
    entry_point.load_tensorflow()
    from tfnlp.utils.files import write_json

    turns = make_turns()
    found = {name: [] for name in turns}
    for number in range(FLAGS.rounds + 1):
        for name, turn in turns.items():
            ms = timed(turn)
            if number:  # the first round traces
                found[name].append(ms)
    for name, ms in found.items():
        print("{:15} {:7.1f} ms a step, {:7.1f} of all cores".format(name, *np.median(ms, 0)))
    # Ratios are taken within a round, since the machine's speed changes between rounds.
    alone, teacher, distilled, known = (np.array(found[name]) for name in turns)
    ratios = {
        "distilling over teacher and student": distilled / (teacher + alone),
        "known outputs over student": known / alone,
    }
    ratios = {name: np.median(ratio, 0).tolist() for name, ratio in ratios.items()}
    for name, (by_clock, of_cores) in ratios.items():
        print(f"{name}: {by_clock:.2f} by the clock, {of_cores:.2f} of all cores")
    ms = {name: np.median(found[name], 0).tolist() for name in turns}
    write_json(f"{FLAGS.output_dir}/distillation_cost.json", {"ms": ms, "ratios": ratios})


def timed(turn):
    """Return a step's milliseconds, by the clock and summed over all cores."""
    start = time.perf_counter(), time.process_time()
    turn()
    taken = np.array([time.perf_counter(), time.process_time()]) - start
    return taken / FLAGS.steps * 1e3


def make_turns():
    """Return {name: function that runs `FLAGS.steps` steps}."""
    from distill.learning import Distiller, make_student, make_terms
    from distill.learning.teacher_outputs import compute_teacher_outputs
    from tfnlp.models import BertConfig, build_model
    from tfnlp.tasks import Classification
    from tfnlp.text import Encodings, LengthBatches
    from tfnlp.training import FineTuner, TrainingConfig, optimizer_of
    from tfnlp.training.run.inference import input_signature

    config = BertConfig(num_layers=6, hidden_dim=384, intermediate_dim=1536)
    outputs = dict.fromkeys(("hidden_states", "attention_scores", "attention_projections"), True)
    teacher = build_model(config, "classifier", 2, **outputs)
    task = Classification(["negative", "positive"])
    rng, count = np.random.default_rng(0), FLAGS.batch_size * FLAGS.steps
    ids = rng.integers(1000, config.vocabulary_size, count * FLAGS.length).astype("int32")
    starts = np.arange(count + 1) * FLAGS.length
    labels = rng.integers(0, 2, count).astype("int32")

    def batches():
        encodings = Encodings(ids, np.zeros_like(ids), starts, np.zeros(count, bool))
        return LengthBatches(encodings, FLAGS.batch_size, labels)

    def fitting(make):
        student = make_student(teacher, num_layers=3)
        model, data = make(student)
        dataset = data.dataset()
        return lambda: model.fit(dataset, verbose=0, shuffle=False)

    def optimizer(model):
        return optimizer_of(TrainingConfig(batch_size=FLAGS.batch_size), model, 1000)

    def alone(student):
        tuner = FineTuner(student, task)
        tuner.compile(optimizer(student), jit_compile=False)
        return tuner, batches()

    def distilled(student, known=False):
        terms = make_terms(FLAGS.method, teacher, student, task)
        data = batches()
        if known:
            reads = [term.teacher for term in terms]
            data.targets = compute_teacher_outputs(teacher, data, reads)
        distiller = Distiller(student, task, terms, None if known else teacher)
        distiller.compile(optimizer(distiller), jit_compile=False)
        return distiller, data

    forward = teacher_pass(teacher, input_signature(teacher))
    dataset = batches().dataset()

    def run_teacher():
        for inputs, _ in dataset:
            forward(inputs)

    return {
        ALONE: fitting(alone),
        TEACHER: run_teacher,
        DISTILLED: fitting(distilled),
        KNOWN: fitting(lambda student: distilled(student, known=True)),
    }


def teacher_pass(teacher, signature):
    """Return a `tf.function` that runs the teacher and returns its logits only."""
    import tensorflow as tf

    return tf.function(lambda inputs: teacher(inputs, training=False)["logits"], [signature])


if __name__ == "__main__":
    entry_point.run(main)
