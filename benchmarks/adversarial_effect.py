"""What virtual adversarial fine-tuning (SiFT) changes: the same runs with it and without.

    python -m benchmarks.adversarial_effect --model_dir=MINILM --task=classifier \\
        --monitor=matthews --train=train.tsv --dev=dev.tsv --adversarial_weight=1 \\
        --output_dir=runs/adversarial

Both get the same weights, batches and schedule for each seed. The score of a run is that of its
best epoch; each run's is kept, so that the same command goes on where it was stopped.
"""

import math
import pathlib

from absl import flags

from benchmarks import finetune_parity
from recipes import common

FLAGS = flags.FLAGS
common.define_adversarial_flags()


def main():
    import numpy as np

    from tfnlp.files import read_json, write_json

    path = pathlib.Path(FLAGS.output_dir) / "adversarial.json"
    scores = read_json(path) if path.exists() else {}
    task, train, dev = finetune_parity.read_task()
    weight = FLAGS.adversarial_weight
    for seed in range(FLAGS.seeds):
        FLAGS.seed = seed
        for name in ("plain", "adversarial"):
            FLAGS.adversarial_weight = weight if name == "adversarial" else 0.0
            key = f"{name} seed {seed}"
            if key not in scores:
                arguments = (task, train, dev, name, common.make_regularizer)
                scores[key] = finetune_parity.train_tfnlp(*arguments)
                write_json(path, scores)
            print(f"{key}: {' '.join(f'{s:.4f}' for s in scores[key])}", flush=True)
    best = {
        name: np.array([max(scores[f"{name} seed {seed}"]) for seed in range(FLAGS.seeds)])
        for name in ("plain", "adversarial")
    }
    for name, values in best.items():
        print(
            f"{name}: mean of {len(values)} best dev scores ({task.monitor}) {values.mean():.4f}"
        )
    gain = best["adversarial"] - best["plain"]
    error = gain.std(ddof=1) / math.sqrt(len(gain)) if len(gain) > 1 else math.nan
    print(f"gain {gain.mean():+.4f}, standard error of it {error:.4f}")


if __name__ == "__main__":
    common.run(main)
