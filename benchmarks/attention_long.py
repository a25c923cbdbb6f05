"""One training step at 4,096 tokens, for benchmarks.attention: prints peak MB and seconds.

python -m benchmarks.attention_long plain 1024
"""

import sys
import time

LENGTH, HEADS, SIZE = 4096, 12, 64


def main(name, block_size):
    from tfnlp import layers

    options = {"block_size": block_size or None}
    layer = {
        "plain": lambda: layers.MultiHeadAttention(HEADS, SIZE, **options),
        "relative": lambda: layers.RelativeAttention(HEADS, SIZE, **options),
        "disentangled": lambda: layers.DisentangledAttention(
            HEADS, SIZE, max_distance=512, num_buckets=256, share_att_key=True, **options
        ),
    }[name]()
    print(*layer_step(layer))


def layer_step(layer):
    """Return the peak MB over the start and the median seconds of a layer's training step."""
    import numpy as np
    import tensorflow as tf

    x = tf.random.normal((1, LENGTH, HEADS * SIZE))
    layer.build(x.shape)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True) ** 2)
        return tape.gradient(loss, [v.value for v in layer.trainable_variables])

    before = memory("VmRSS")
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return (memory("VmHWM") - before) / 1e3, float(np.median(seconds[1:]))


def memory(field):
    """Return a field of this process's status, in kB (Linux)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
