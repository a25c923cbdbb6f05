"""Effect of virtual adversarial fine-tuning (SiFT): the same runs with and without it.

    python -m benchmarks.adversarial_effect --model_dir=MINILM --task=classifier \\
        --monitor=matthews --train=train.tsv --dev=dev.tsv --adversarial_weight=1 \\
        --output_dir=runs/adversarial

Both get the same weights, batches and schedule for each seed. The score of a run is that of its
best epoch. Each run's scores are kept, so that the same command resumes where it was stopped.
"""

import functools
import math

from absl import flags

from benchmarks import finetune_parity
from recipes.shell import entry_point, finetuning_run

FLAGS = flags.FLAGS
finetuning_run.define_adversarial_flags()


def main():
    entry_point.load_tensorflow()
    import numpy as np

    task, train, dev = finetune_parity.read_task()
    weights = {"plain": 0.0, "adversarial": FLAGS.adversarial_weight}

    def run(name):
        FLAGS.adversarial_weight = weights[name]
        return finetune_parity.train_tfnlp(task, train, dev, name, finetuning_run.make_regularizer)

    runs = {name: functools.partial(run, name) for name in weights}
    best = finetune_parity.best_scores("adversarial.json", runs)
    best = {name: np.array(values) for name, values in best.items()}
    for name, values in best.items():
        print(
            f"{name}: mean of {len(values)} best dev scores ({task.monitor}) {values.mean():.4f}"
        )
    gain = best["adversarial"] - best["plain"]
    error = gain.std(ddof=1) / math.sqrt(len(gain)) if len(gain) > 1 else math.nan
    print(f"gain {gain.mean():+.4f}, standard error of it {error:.4f}")


if __name__ == "__main__":
    entry_point.run(main)
