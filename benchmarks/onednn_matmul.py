"""Search for TensorFlow matrix products that oneDNN gets wrong: wrong values, or heap corruption.

    TF_ENABLE_ONEDNN_OPTS=1 python -m benchmarks.onednn_matmul --output_dir=runs/onednn

Each pair of shapes is multiplied again and again by a process of its own, forked from one that
has imported TensorFlow, and products and gradients are compared with NumPy's; with the second
operand transposed and not, in float32 and bfloat16, in eager mode and in a graph.
`TF_ENABLE_ONEDNN_OPTS=0` is the control. glibc finds more with
`LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3`. docs/onednn_matmul.md has the results.
"""

import itertools
import os
import pathlib
import signal

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write onednn_matmul.json into.")
flags.DEFINE_integer("repeats", 200, "Products of each pair of shapes in each way.", 1)
flags.mark_flag_as_required("output_dir")

BATCHES = (1, 2, 13)
SIZES = ((13, 4, 2), (64, 32, 48))  # M, K, N


WAYS = tuple(itertools.product((False, True), ("float32", "bfloat16"), ("eager", "graph")))


def cases():
    """Yield pairs of shapes, (..., M, K) and (..., K, N)."""
    leading = []
    for batch, heads in itertools.product(BATCHES, (1, 3)):
        for of_table in {(), (1,), (heads,), (1, 1), (1, heads), (batch, heads)}:
            leading.append(((batch, heads), of_table))
        leading += [((batch,), (1,)), ((1, heads), (batch, heads))]
    for (first, second), (m, k, n) in itertools.product(leading, SIZES):
        yield (*first, m, k), (*second, k, n)


def count_wrong(a, b, transposed, dtype, mode):
    """Multiply `FLAGS.repeats` times; return how many times product or gradient is wrong."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    b = (*b[:-2], b[-1], b[-2]) if transposed else b
    x, y = (tf.cast(rng.normal(size=shape), dtype) for shape in (a, b))
    matrix = tf.cast(tf.linalg.matrix_transpose(y) if transposed else y, "float32").numpy()
    expected = tf.cast(x, "float32").numpy() @ matrix
    by_x = np.ones_like(expected) @ np.swapaxes(matrix, -1, -2)
    by_x = by_x.sum(axis=0, keepdims=True) if a[0] < len(by_x) else by_x

    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.matmul(x, y, transpose_b=transposed)
        return z, tape.gradient(z, x)

    step = tf.function(step) if mode == "graph" else step
    tolerance = 1e-3 if dtype == "float32" else 0.5
    wrong = 0
    for _ in range(FLAGS.repeats):
        pairs = zip(step(), (expected, by_x), strict=True)
        wrong += any(np.abs(tf.cast(p, "float32") - q).max() > tolerance for p, q in pairs)
    return wrong


def outcome(a, b):
    """Multiply in a child process; return "right", the way that is wrong, or a signal's name."""
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        wrong = (i for i, way in enumerate(WAYS, 1) if count_wrong(a, b, *way))
        os._exit(next(wrong, 0))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    way = os.WEXITSTATUS(status)
    return f"wrong with (transposed, type, mode) = {WAYS[way - 1]}" if way else "right"


def main():
    entry_point.load_tensorflow()
    import tensorflow as tf

    from tfnlp.utils.files import write_json

    found = []
    for a, b in cases():
        result = outcome(a, b)
        found.append([a, b, result])
        if result != "right":
            print(f"{a} by {b}: {result}", flush=True)
    bad = sum(result != "right" for *_, result in found)
    print(f"{bad} of {len(found)} pairs of shapes fail; TensorFlow {tf.__version__}")
    write_json(pathlib.Path(FLAGS.output_dir) / "onednn_matmul.json", {"pairs": found})


if __name__ == "__main__":
    entry_point.run(main)
