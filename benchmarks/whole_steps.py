"""Whole training steps by XLA or in half precision, beside float32 in TensorFlow's graphs.

    python -m benchmarks.whole_steps --way=xla --output_dir=runs/xla
    python -m benchmarks.whole_steps --way=mixed_bfloat16 --output_dir=runs/half

A step of fine-tuning a BERT of MiniLM's sizes, of pretraining a BERT of 4 layers of width 256 by
masked tokens, and of distilling 6 layers into 3 by logits, on a batch of random tokens of one
length, of which a quarter of each row is padding, by our `Trainer`s with dropout. Both ways take
turns in one process. Figures are medians of the rounds, by the clock and of all cores; the first
step, which traces and compiles, stands apart.
"""

import itertools
import time

import numpy as np
from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write whole_steps.json into.")
flags.DEFINE_enum("way", None, ["xla", "mixed_bfloat16", "mixed_float16"], "What is measured.")
flags.DEFINE_list("steps", ["fine-tuning", "pretraining", "distillation"], "Steps to measure.")
flags.DEFINE_list("lengths", ["32", "64", "128"], "Tokens of each text.")
flags.DEFINE_integer("batch_size", 32, "Texts in a batch.", 1)
flags.DEFINE_integer("turn", 4, "Steps in a turn.", 1)
flags.DEFINE_integer("rounds", 7, "Turns of each.", 1)
flags.mark_flags_as_required(["way", "output_dir"])

MASKED_SHARE = 0.15


def main():
    entry_point.load_tensorflow()
    from tfnlp.utils.files import write_json

    figures = []
    for name, length in itertools.product(FLAGS.steps, map(int, FLAGS.lengths)):
        turns, times = [make_turn(name, length, way) for way in (None, FLAGS.way)], ([], [])
        first = [timed(turn, 1) for turn in turns]
        for _ in range(FLAGS.rounds):
            for turn, taken in zip(turns, times, strict=True):
                taken.append(timed(turn, FLAGS.turn))
        plain, other = np.array(times)
        ratios = np.median(other / plain, 0)
        show(f"{name}, {length} tokens", *np.median(times, 1), ratios, np.array(first) / 1e3)
        figures.append({"step": name, "length": length, "ms": np.array(times).tolist()})
        figures[-1]["first_ms"] = np.array(first).tolist()
        write_json(f"{FLAGS.output_dir}/whole_steps.json", figures)


def show(title, plain, other, ratios, first):
    """Print a step's milliseconds in both ways, their ratio, and the first step's seconds."""
    print(f"{title}: float32 {plain[0]:.0f} ms, {FLAGS.way} {other[0]:.0f},", end=" ")
    print(f"{ratios[0]:.2f} times; of all cores {plain[1]:.0f}, {other[1]:.0f},", end=" ")
    print(f"{ratios[1]:.2f} times; first step", end=" ")
    print("{:.1f} s of all cores, {:.1f}".format(*first[:, 1]), flush=True)


def timed(turn, steps):
    """Return a step's milliseconds, by the clock and summed over all cores."""
    start = time.perf_counter(), time.process_time()
    turn(steps)
    return (np.array([time.perf_counter(), time.process_time()]) - start) / steps * 1e3


def make_turn(name, length, way):
    """Return a function that fits a model for a number of steps, in float32 if `way` is None."""
    import keras
    import tensorflow as tf

    from tfnlp.training import TrainingConfig, compile_model

    keras.utils.set_random_seed(0)
    config = TrainingConfig(batch_size=FLAGS.batch_size, fixed_length=True, xla=way == "xla")
    keras.config.set_dtype_policy("float32" if way in (None, "xla") else way)
    trainer, inputs, labels = MAKERS[name](length)
    compile_model(config, trainer, 1000)
    data = tf.data.Dataset.from_tensors((inputs, labels)).cache().repeat()

    def turn(steps):
        trainer.fit(data, steps_per_epoch=steps, verbose=0, shuffle=False)

    return turn


def batch(length):
    """Draw one batch: a dict of inputs, and labels of 2 classes."""
    rng = np.random.default_rng(0)
    ids = rng.integers(1000, 16_000, (FLAGS.batch_size, length)).astype("int32")
    mask = np.ones_like(ids)
    mask[:, length - length // 4 :] = 0
    inputs = {"token_ids": ids * mask, "segment_ids": np.zeros_like(ids), "padding_mask": mask}
    return inputs, rng.integers(0, 2, FLAGS.batch_size).astype("int32")


def minilm():
    from tfnlp.models import BertConfig, build_model

    return build_model(
        BertConfig(num_layers=6, hidden_dim=384, num_heads=12, intermediate_dim=1536),
        "classifier",
        2,
    )


def task():
    from tfnlp.tasks import Classification

    return Classification(["negative", "positive"])


def fine_tuning(length):
    from tfnlp.training import FineTuner

    return FineTuner(minilm(), task()), *batch(length)


def pretraining(length):
    from tfnlp.models import BertConfig, build_model
    from tfnlp.objectives import MaskedLM
    from tfnlp.training.step.trainer import Pretrainer

    config = BertConfig(
        vocabulary_size=16_000, num_layers=4, hidden_dim=256, num_heads=4, intermediate_dim=1024
    )
    inputs, _ = batch(length)
    count = round(MASKED_SHARE * length)
    places = np.argsort(np.random.default_rng(1).random((FLAGS.batch_size, length * 3 // 4)))
    places = np.sort(places[:, :count]).astype("int32")
    labels = np.take_along_axis(inputs["token_ids"], places, 1)
    objective = MaskedLM()
    model = objective.trained(build_model(config, "masked_lm"))
    return Pretrainer(objective, model), inputs | {"masked_positions": places}, labels


def distillation(length):
    from distill.learning import Distiller, make_student, make_terms

    teacher = minilm()
    student = make_student(teacher, num_layers=3)
    terms = make_terms("logits", teacher, student, task())
    return Distiller(student, task(), terms, teacher), *batch(length)


MAKERS = {
    "fine-tuning": fine_tuning,
    "pretraining": pretraining,
    "distillation": distillation,
}

if __name__ == "__main__":
    entry_point.run(main)
