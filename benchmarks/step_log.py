"""Cost of the figures of steps: trainings with and without --log_steps, in alternating rounds.

    python -m benchmarks.step_log

Both train a BERT on random texts in one process; the times are those of whole calls of `fit` on
one graph each. Prints the medians of wall and of processor time of a step, and of their ratios.
"""

import os
import pathlib
import tempfile
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_integer("log_steps", 10, "Steps between lines.", 1)
flags.DEFINE_integer("steps", 40, "Steps of a round.", 1)
flags.DEFINE_integer("rounds", 8, "Rounds that count, after one that traces.", 1)
flags.DEFINE_integer("num_layers", 4, "Blocks of the model.", 1)
flags.DEFINE_integer("hidden_dim", 256, "Width of the model.", 1)
flags.DEFINE_integer("batch_size", 16, "Texts of a batch.", 1)
flags.DEFINE_integer("length", 64, "Tokens of a text.", 4)


def make_batches():
    import numpy as np

    from tfnlp.text import LengthBatches
    from tfnlp.text.tokenizers.tokenizer import Encoding

    rng = np.random.default_rng(0)
    count = FLAGS.steps * FLAGS.batch_size
    ids = rng.integers(5, 8000, (count, FLAGS.length)).tolist()
    encodings = [Encoding(row, [0] * FLAGS.length, truncated=False) for row in ids]
    labels = [row[0] % 2 for row in ids]
    return LengthBatches(encodings, FLAGS.batch_size, labels, shuffle=True)


def trainer_of(batches, log_steps, folder):
    """Return a function that trains one more epoch, and its config's log of steps or none."""
    from tfnlp.models import BertConfig, build_model
    from tfnlp.tasks import Classification
    from tfnlp.training import FineTuner, RunFolder, TrainingConfig, compile_model, fit

    sizes = {"hidden_dim": FLAGS.hidden_dim, "intermediate_dim": 4 * FLAGS.hidden_dim}
    config = BertConfig(
        vocabulary_size=8000, num_layers=FLAGS.num_layers, num_heads=4, max_length=512, **sizes
    )
    trainer = FineTuner(build_model(config, "classifier", 2), Classification(["a", "b"]))
    compile_model(TrainingConfig(epochs=FLAGS.rounds + 1), trainer, len(batches))
    run, epochs = RunFolder(pathlib.Path(folder), {}), []

    def train():
        epochs.append(1)
        options = {"epochs": len(epochs), "log_steps": log_steps, "checkpoint_steps": 10**6}
        fit(trainer, batches, TrainingConfig(**options), run, lambda folder: None)

    return train, run


def main():
    entry_point.load_tensorflow()
    import numpy as np

    batches = make_batches()
    with tempfile.TemporaryDirectory() as place:
        trainings, seconds = {}, {}
        for name, log_steps in (("without", 0), ("with", FLAGS.log_steps)):
            trainings[name] = trainer_of(batches, log_steps, os.path.join(place, name))
            seconds[name] = []
        for step in range(FLAGS.rounds + 1):
            for name, (train, _) in trainings.items():
                start = np.array([time.perf_counter(), time.process_time()])
                train()
                end = np.array([time.perf_counter(), time.process_time()])
                if step:  # the first traces
                    seconds[name].append((end - start) / FLAGS.steps)
        last = trainings["with"][1].steps()[-1]
    for name, times in seconds.items():
        wall, processor = 1e3 * np.median(times, 0)
        print(f"{name:8} {wall:7.1f} ms a step, {processor:7.1f} ms of processors")
    ratios = np.divide(seconds["with"], seconds["without"])
    print("ratios   {:7.3f}, {:7.3f}".format(*np.median(ratios, 0)))
    print("rounds  ", *(f"{wall:.3f}/{processor:.3f}" for wall, processor in ratios))
    print({name: value for name, value in last.items() if name != "time"})


if __name__ == "__main__":
    entry_point.run(main)
