"""Size and speed of TFLite files with sparse weights, and a check that they run.

    python -m benchmarks.tflite_sparsity

converts one dense layer (1,024 x 1,024, 16 rows) with zeros in several patterns, dense and by the
converter's EXPERIMENTAL_SPARSITY, in float32 and with int8 weights, and runs each file in LiteRT
with XNNPACK, its default, and without. See "Sparse weights" in docs/results/compression.md.
"""

import gzip
import tempfile
import time

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from distill.export.converter import convert

WIDTH, ROWS, CALLS = 1024, 16, 200
KERNELS = {
    "XNNPACK": OpResolverType.AUTO,
    "built-in": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
}


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WIDTH)).astype("float32")
    for name, weights in patterns(rng):
        for int8 in (False, True):
            for sparse in (False, True):
                chosen = ["DEFAULT"] * int8 + ["EXPERIMENTAL_SPARSITY"] * sparse
                content = product_file(weights, chosen)
                form = f"{'int8' if int8 else 'float32'}{', sparse tensors' if sparse else ''}"
                sizes = f"{len(content):,} bytes, {len(gzip.compress(content)):,} gzipped"
                ran = [f"{k}: {run(content, x, weights, v)}" for k, v in KERNELS.items()]
                print(f"{name}; {form}: {sizes}; {'; '.join(ran)}", flush=True)


def patterns(rng):
    """Yield (name, weights), inputs by outputs."""
    weights = rng.normal(size=(WIDTH, WIDTH)).astype("float32")
    sizes = np.abs(weights)
    yield "dense", weights
    for share in (0.5, 0.8, 0.9):
        yield f"{share:.0%} zeros", weights * (sizes >= np.quantile(sizes, share))
    ranks = sizes.reshape(-1, 4, WIDTH).argsort(1).argsort(1)
    yield "2:4", weights * (ranks >= 2).reshape(WIDTH, WIDTH)
    for height in (4, 16):
        means = sizes.reshape(-1, height, WIDTH).mean(1)
        mask = (means >= np.quantile(means, 0.5)).repeat(height, 0)
        yield f"50% zeros in blocks of {height}x1", weights * mask


def product_file(weights, optimizations):
    """Convert a product of (ROWS, WIDTH) and the weights to a TFLite file's content."""
    module = tf.Module()
    module.weights = tf.Variable(weights)

    @tf.function(input_signature=[tf.TensorSpec((ROWS, WIDTH))])
    def product(x):
        return tf.matmul(x, module.weights)

    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=product.get_concrete_function())
        return convert(folder, optimizations=optimizations)


def run(content, x, weights, kernels):
    """Run a file on one thread; return a text with its time and error."""
    try:
        runner = Interpreter(
            model_content=content, num_threads=1, experimental_op_resolver_type=kernels
        )
        runner.allocate_tensors()
        runner.set_tensor(runner.get_input_details()[0]["index"], x)
        runner.invoke()
    except (RuntimeError, ValueError):
        return "does not run"
    found = runner.get_tensor(runner.get_output_details()[0]["index"])
    error = np.abs(found - x @ weights).max() / np.abs(x @ weights).max()
    start = time.perf_counter()
    for _ in range(CALLS):
        runner.invoke()
    return f"{(time.perf_counter() - start) / CALLS * 1e3:.2f} ms, off by {error:.3f}"


if __name__ == "__main__":
    main()
