"""Final weights of training with two and four workers, compared with one process.

    python -m benchmarks.workers

The processes train on this machine with `--strategy=multi_worker` for 24 steps, on batches split
unequally between them. Prints the largest difference of a final weight between one process and
several, and between an undisturbed run and one whose last worker was killed in mid-run.
"""

import os
import tempfile


def main():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    from tests import kills
    from tests.training import worker_runs

    with tempfile.TemporaryDirectory() as folder:
        weights, _ = worker_runs.train(tf.distribute.get_strategy(), f"{folder}/one", True)
    for workers in (2, 4):
        with tempfile.TemporaryDirectory() as folder:
            killed = [0] * (workers - 1) + [-9]
            for number, codes in ((1, killed), (2, [0] * workers)):
                found, errors = worker_runs.start(folder, number, workers)
                if found != codes:
                    raise SystemExit("\n".join(errors))
            ends = worker_runs.ends(folder)
        whole = ends["whole0"]["weights"]
        apart = kills.largest_difference(whole, weights)
        broken = kills.largest_difference(whole, ends["broken0"]["weights"])
        print(f"{workers} workers: {apart:.1e} from one, {broken:.1e} after a kill", flush=True)


if __name__ == "__main__":
    main()
