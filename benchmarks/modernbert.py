"""ModernBERT: local beside global attention at 4,096 tokens, and whole models beside transformers.

    python -m benchmarks.modernbert

Prints medians of training steps at 4,096 tokens, each in a separate process that takes turns with
the others, with the peak memory over the start: of one attention layer of 12 heads of 64, to all
tokens and to 64 on either side; and of a tagger of 6 blocks of width 256, with global blocks alone
and with one of three, whole and in blocks of 512. Then, in one process and in turns, ModernBERT
with 4 blocks of its base's width on 8 x 128 tokens, forward and a training step without the
optimizer, beside that of `transformers` with the same weights. Needs `.[benchmarks]`.

    python -m benchmarks.modernbert layer 64

runs a single step in this process, of the layer with a window of 64 (0 for global attention);
`model 3 512` one of the model with a global block in three, those in blocks of 512.
"""

import sys
import tempfile
import time

from benchmarks.attention_long import HEADS, LENGTH, SIZE, layer_step
from benchmarks.lone_steps import measure, run_alone

CASES = {
    "layer, global": ("layer", 0),
    "layer, local": ("layer", 64),
    "model, global": ("model", 1, 0),
    "model, local": ("model", 3, 0),
    "model, global, in blocks": ("model", 1, 512),
    "model, local, in blocks": ("model", 3, 512),
}
ROUNDS, REPEATS = 3, 7


def main():
    import numpy as np

    found = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name, arguments in CASES.items():
            found[name].append(run_alone("modernbert", *arguments))
    print("4,096 tokens: MB, seconds; shares of global attention's")
    for name, figures in found.items():
        first = "layer, global" if name.startswith("layer") else "model, global"
        megabytes, seconds = np.median(figures, axis=0)
        shares = np.median(np.divide(figures, found[first]), axis=0)
        print(f"  {name:26} {megabytes:7,.0f} {seconds:7.2f}  {shares[0]:5.2f} {shares[1]:5.2f}")
    print("8 x 128 tokens: ms, transformers' ms, ratio; by the clock and of processor time")
    for name, functions in short_texts().items():
        ms = alternating(*functions)  # (rounds, functions, clocks)
        ratios = np.median(ms[:, 0] / ms[:, 1], axis=0)
        (clock, core), (their_clock, their_core) = np.median(ms, axis=0)
        print(f"  {name:8} {clock:7.1f} {their_clock:7.1f} {ratios[0]:5.2f}  ", end="")
        print(f"{core:7.1f} {their_core:7.1f} {ratios[1]:5.2f}", flush=True)


def local_step(window):
    """Return the result of `layer_step` for attention to some positions; 0: to all."""
    from tfnlp.layers import MultiHeadAttention, RotaryEmbedding

    layer = MultiHeadAttention(
        HEADS, SIZE, use_bias=False, rotary=RotaryEmbedding(), window=window or None
    )
    return layer_step(layer)


def model_step(global_every, block_size):
    """Return the result of `measure` for a tagger, a global block in so many."""
    import numpy as np

    from tfnlp.models import ModernBertConfig, build_model

    config = ModernBertConfig(
        1000, 6, 4, 256, 512, global_every=global_every, pad_token_id=0, max_length=LENGTH
    )
    model = build_model(config, "tagger", 9, block_size=block_size or None)
    rng = np.random.default_rng(0)
    ids = rng.integers(10, 1000, (1, LENGTH)).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        return measure(model, inputs, rng.integers(0, 9, (1, LENGTH)), file.name)


def short_texts():
    """Return {name: (our function, that of transformers)} of models with the same weights."""
    import numpy as np
    import tensorflow as tf
    import torch
    import transformers

    from tfnlp.checkpoints import load_model

    sizes = {"vocab_size": 1000, "num_hidden_layers": 4, "pad_token_id": 0}
    theirs = transformers.ModernBertModel(transformers.ModernBertConfig(**sizes))
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = load_model(folder)
    ids = np.random.default_rng(0).integers(1, 1000, (8, 128)).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    inputs = {name: tf.constant(x) for name, x in inputs.items()}
    ids = torch.tensor(ids).long()
    tensors = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    variables = [v.value for v in ours.trainable_variables]

    @tf.function
    def our_step():
        with tf.GradientTape() as tape:
            x = ours(inputs, training=True)["sequence_output"]
            loss = tf.reduce_mean(x * x)
        return tape.gradient(loss, variables)

    def their_step():
        theirs.train().zero_grad()
        x = theirs(**tensors).last_hidden_state
        (x * x).mean().backward()

    def their_states():
        with torch.no_grad():
            return theirs.eval()(**tensors).last_hidden_state

    forward = tf.function(lambda: ours(inputs)["sequence_output"])
    np.testing.assert_allclose(forward(), their_states(), atol=1e-4)
    return {"forward": (forward, their_states), "step": (our_step, their_step)}


def alternating(*functions):
    """Return the milliseconds of each function in rounds, without the first, by two clocks.

    Returns:
        (rounds, functions, 2): of the clock and of the processor, which other work on the machine
        changes less.
    """
    import numpy as np

    rounds = [[both_clocks(function) for function in functions] for _ in range(REPEATS + 1)]
    return 1e3 * np.array(rounds[1:])


def both_clocks(function):
    core = time.process_time()
    clock = seconds(function)
    return clock, time.process_time() - core


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


if __name__ == "__main__":
    if sys.argv[1:]:
        step = {"layer": local_step, "model": model_step}[sys.argv[1]]
        print(*step(*map(int, sys.argv[2:])))
    else:
        main()
