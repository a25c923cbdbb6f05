"""Time of the parts of a training step on one core: TensorFlow, its XLA, and PyTorch.

    python -m benchmarks.step_parts --output_dir=runs/parts
    ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 \\
        XLA_FLAGS=--xla_cpu_max_isa=AVX2 python -m benchmarks.step_parts \\
        --output_dir=runs/parts_avx2

The second imitates a processor without AVX-512. Each part, forward and backward, is that of a
MiniLM block on 32 x 32 tokens: a product, GELU, attention from its scores (softmax and a product),
layer norm, and a sum with dropout. Ours
are tfnlp's functions in a `tf.function`, with and without XLA. Milliseconds are of processor time,
the median of alternating rounds. Needs `.[parity]`.
"""

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"), "1")

import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write parts.json into.")
flags.DEFINE_integer("rounds", 15, "Rounds.", 1)
flags.mark_flag_as_required("output_dir")

ROWS, WIDTH, INNER, HEADS, LENGTH = 1024, 384, 1536, 12, 32
SHAPES = {
    "product": (ROWS, WIDTH),
    "gelu": (ROWS, INNER),
    "attention": (ROWS // LENGTH, HEADS, LENGTH, LENGTH),
    "layer norm": (ROWS, WIDTH),
    "dropout and sum": (ROWS, WIDTH),
}


def main():
    entry_point.load_tensorflow()
    import numpy as np

    from tfnlp.utils.files import write_json

    figures, rng = {}, np.random.default_rng(0)
    for part, shape in SHAPES.items():
        x = rng.normal(size=shape).astype("float32")
        kernel = rng.normal(size=(WIDTH, INNER)).astype("float32")
        runs = {
            "TensorFlow": by_tensorflow(part, x, kernel, xla=False),
            "TensorFlow, XLA": by_tensorflow(part, x, kernel, xla=True),
            "PyTorch": by_torch(part, x, kernel),
        }
        times = {name: [] for name in runs}
        for _ in range(FLAGS.rounds + 1):
            for name, run in runs.items():
                start = time.process_time()
                for _ in range(5):
                    run()
                times[name].append((time.process_time() - start) / 5 * 1e3)
        figures[part] = {name: float(np.median(ms[1:])) for name, ms in times.items()}
        row = "  ".join(f"{name} {ms:6.2f} ms" for name, ms in figures[part].items())
        print(f"{part:16} {row}")
    write_json(f"{FLAGS.output_dir}/parts.json", figures)


def by_tensorflow(part, x, kernel, xla):
    """Return a function that computes a part and its gradients."""
    import tensorflow as tf

    from tfnlp.functional.activations import fused_gelu
    from tfnlp.functional.attention import fused_attention
    from tfnlp.layers import LayerNormalization

    norm = LayerNormalization()
    norm.build(x.shape)
    calls = {
        "product": lambda x, kernel: x @ kernel,
        "gelu": lambda x, _: fused_gelu(x),
        "attention": lambda x, _: fused_attention(x, x),
        "layer norm": lambda x, _: norm(x),
        "dropout and sum": lambda x, _: x + tf.nn.dropout(x, 0.1),
    }
    x, kernel = tf.constant(x), tf.constant(kernel)

    @tf.function(jit_compile=xla)
    def step(x, kernel):
        with tf.GradientTape() as tape:
            tape.watch((x, kernel))
            y = calls[part](x, kernel)
        return tape.gradient(y, (x, kernel) if part == "product" else x, tf.ones_like(y))

    return lambda: step(x, kernel)


def by_torch(part, x, kernel):
    import torch

    functional = torch.nn.functional
    calls = {
        "product": lambda x, kernel: x @ kernel,
        "gelu": lambda x, _: functional.gelu(x),
        "attention": lambda x, _: functional.softmax(x, -1) @ x,
        "layer norm": lambda x, _: functional.layer_norm(x, x.shape[-1:]),
        "dropout and sum": lambda x, _: x + functional.dropout(x, 0.1),
    }
    inputs = [torch.tensor(a, requires_grad=True) for a in (x, kernel)]

    def step():
        y = calls[part](*inputs)
        return torch.autograd.grad(y, inputs[: 1 + (part == "product")], torch.ones_like(y))

    return step


if __name__ == "__main__":
    entry_point.run(main)
