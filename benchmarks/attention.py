"""Speed and memory of attention layers, compared with keras-hub and transformers.

    python -m benchmarks.attention --output_dir=runs/attention

Every layer has 12 heads of 64 and the same weights as its peers, whose outputs are compared
first. None gets a mask, but keras-hub's and transformers' disentangled attention, which fail
without one: it is of ones, as their own models make it. Rounds alternate; figures are medians
and ratios. Sections:

    layers: forward and forward+backward at 8 x 128 and 2 x 512, compiled without XLA;
    tflite: 4 blocks of width 312 at 128 tokens in TFLite, one thread;
    long: training at 4,096 tokens, whole and in blocks of keys, a process each.

Needs `.[benchmarks]`.
"""

import os
import pathlib
import subprocess
import sys
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write attention.json into.")
flags.DEFINE_list("sections", ["layers", "tflite", "long"], "What to measure.")
flags.DEFINE_integer("repeats", 5, "Timed runs of each in a round.", 1)
flags.DEFINE_integer("rounds", 9, "Rounds.", 1)
flags.mark_flag_as_required("output_dir")

HEADS, SIZE = 12, 64
WIDTH = HEADS * SIZE
SHAPES = ((8, 128), (2, 512))
BUCKETS, MAX_DISTANCE = 256, 512
TFLITE_WIDTH, TFLITE_LENGTH, TFLITE_LAYERS = 312, 128, 4
LONG, BLOCK_SIZE = 4096, 512


def main():
    entry_point.load_tensorflow()
    from tfnlp.utils.files import write_json

    sections = {"layers": time_layers, "tflite": time_tflite, "long": time_long}
    unknown = set(FLAGS.sections) - set(sections)
    if unknown:
        from tfnlp.utils.errors import InputError

        raise InputError(
            f"--sections={','.join(sorted(unknown))} is unknown; choose from "
            f"{', '.join(sections)}."
        )
    figures = {}
    for name in FLAGS.sections:
        figures[name] = sections[name]()
        write_json(pathlib.Path(FLAGS.output_dir) / "attention.json", figures)


def medians(runs):
    """Return each function's milliseconds, the median over alternating rounds."""
    import numpy as np

    found = {name: [] for name in runs}
    for step in range(FLAGS.rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(FLAGS.repeats):
                run()
            if step:  # the first round warms up
                found[name].append((time.perf_counter() - start) / FLAGS.repeats * 1e3)
    return {name: float(np.median(times)) for name, times in found.items()}


def time_layers():
    """Time every layer at every shape, and print a table."""
    figures = {}
    for batch, length in SHAPES:
        layers = {
            "matrix products": products(batch, length),
            "matrix products and softmax": products(batch, length, softmax=True),
            "matrix products, relative": products(batch, length, streams=1),
            "matrix products, two-stream": products(batch, length, streams=2),
        }
        layers |= plain(batch, length) | disentangled(batch, length)
        layers |= relative(batch, length) | two_stream(batch, length)
        times = [medians({name: pair[i] for name, pair in layers.items()}) for i in range(2)]
        print(f"\nbatch {batch}, length {length}: ms forward / with backward, times tfnlp plain")
        for name in layers:
            ms = [t[name] for t in times]
            ratios = [t[name] / t["tfnlp plain"] for t in times]
            print(f"  {name:32} {ms[0]:7.1f} / {ms[1]:7.1f}   {ratios[0]:5.2f} / {ratios[1]:5.2f}")
            figures[f"{batch}x{length} {name}"] = {"ms": ms, "times_plain": ratios}
        for ours, theirs in (
            ("matrix products", "matrix products and softmax"),
            ("matrix products", "tfnlp plain"),
            ("tfnlp relative", "keras-hub content stream"),
            ("tfnlp relative", "transformers content stream"),
            ("tfnlp two-stream", "keras-hub two-stream"),
            ("tfnlp two-stream", "transformers two-stream"),
            ("matrix products, relative", "keras-hub content stream"),
            ("matrix products, two-stream", "keras-hub two-stream"),
        ):
            ratios = [t[theirs] / t[ours] for t in times]
            print(f"  {theirs} takes {ratios[0]:.2f} / {ratios[1]:.2f} times as long as {ours}")
    return figures


def inputs(batch, length, seed=0):
    import numpy as np

    return np.random.default_rng(seed).normal(size=(batch, length, WIDTH)).astype("float32")


def keras_pair(call, layer, x):
    """Return graph functions of `call` on x: forward, and gradients of weights and input."""
    import tensorflow as tf

    x = tf.constant(x)
    variables = [v.value for v in layer.trainable_variables]

    @tf.function
    def forward():
        return call(x)

    @tf.function
    def backward():
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.add_n([tf.reduce_sum(y * y) for y in tf.nest.flatten(call(x))])
        return tape.gradient(loss, [x, *variables], unconnected_gradients="zero")

    return forward, backward


def torch_pair(call, module, x):
    """Return functions of `call` on x for a torch module: forward, and with all gradients."""
    import torch

    x = torch.tensor(x, requires_grad=True)

    def forward():
        with torch.no_grad():
            return call(x)

    def backward():
        module.zero_grad()
        x.grad = None
        sum((y * y).sum() for y in call(x)).backward()

    return forward, backward


def agree(name, found, expected):
    """Print the largest difference of two layers' outputs; raise AssertionError above 1e-3."""
    import numpy as np

    difference = float(np.abs(np.asarray(found) - np.asarray(expected)).max())
    print(f"  {name}: outputs differ by at most {difference:.1e}")
    if difference > 1e-3:
        raise AssertionError(f"{name} does not compute the same: {difference}")


def products(batch, length, streams=0, softmax=False):
    """Return graph functions of an attention's matrix products alone, a lower bound of its time.

    With `streams` 0 the attention is plain, else relative with 1 or 2 streams. Relative attention
    projects as many positions as there are tokens, once, which sines and cosines allow, and has
    one positional score for each key. With `softmax`, a softmax stands between the two products
    of plain attention.
    """
    import tensorflow as tf

    from tfnlp.functional.attention import fused_attention

    shape, count = (WIDTH, WIDTH), 5 if streams else 4
    kernels = [tf.Variable(tf.random.normal(shape, stddev=0.03)) for _ in range(count)]
    seeds = range(streams or 1)
    xs = [tf.constant(inputs(batch, length, seed).reshape(-1, WIDTH)) for seed in seeds]
    sinusoids = tf.constant(inputs(1, length)[0])

    def heads(x, kernel):
        return tf.reshape(tf.matmul(x, kernel), (-1, HEADS, length, SIZE))

    def call():
        """Compute each stream's output and, in relative attention, its positional scores."""
        k, v = heads(xs[0], kernels[1]), heads(xs[0], kernels[2])
        r = heads(sinusoids, kernels[4]) if streams else None
        found = []
        for x in xs:
            q = heads(x, kernels[0])
            scores = tf.matmul(q, k, transpose_b=True)
            context = fused_attention(scores, v) if softmax else tf.matmul(scores, v)
            found.append(tf.matmul(tf.reshape(context, (-1, WIDTH)), kernels[3]))
            if streams:
                found.append(tf.matmul(q, r, transpose_b=True))
        return found

    @tf.function
    def forward():
        return call()

    @tf.function
    def backward():
        with tf.GradientTape() as tape:
            tape.watch(xs)
            found = call()
        return tape.gradient(found, [*xs, *kernels], output_gradients=found)

    return forward, backward


def plain(batch, length):
    import keras

    from tfnlp.layers import MultiHeadAttention

    x = inputs(batch, length)
    ours, theirs = MultiHeadAttention(HEADS, SIZE), keras.layers.MultiHeadAttention(HEADS, SIZE)
    ours(x), theirs(x, x)
    for name in ("query", "key", "value"):
        getattr(theirs, f"_{name}_dense").kernel.assign(
            getattr(ours, name).kernel.numpy().reshape(WIDTH, HEADS, SIZE)
        )
    theirs._output_dense.kernel.assign(
        ours.output_dense.kernel.numpy().reshape(HEADS, SIZE, WIDTH)
    )
    agree("plain, keras", ours(x), theirs(x, x))
    return {
        "tfnlp plain": keras_pair(ours, ours, x),
        "keras plain": keras_pair(lambda x: theirs(x, x), theirs, x),
    }


def disentangled(batch, length):
    """Build DeBERTa v3's attention: 256 buckets up to distance 512, shared projections."""
    import keras_hub.src.models.deberta_v3.disentangled_self_attention as hub
    import numpy as np
    import torch
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2 import modeling_deberta_v2

    from tfnlp.layers import DisentangledAttention

    x, table = inputs(batch, length), inputs(1, 2 * BUCKETS, seed=1)[0]
    ours = DisentangledAttention(
        HEADS, SIZE, max_distance=MAX_DISTANCE, num_buckets=BUCKETS, share_att_key=True
    )
    ours(x, position_table=table)
    config = DebertaV2Config(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        relative_attention=True,
        position_buckets=BUCKETS,
        max_relative_positions=MAX_DISTANCE,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
    )
    module = modeling_deberta_v2.DisentangledSelfAttention(config).eval()
    dense = torch.nn.Linear(WIDTH, WIDTH)
    theirs = hub.DisentangledSelfAttention(
        HEADS, WIDTH, MAX_DISTANCE, bucket_size=BUCKETS, dropout=0.0
    )
    theirs.build((batch, length, WIDTH), (1, 2 * BUCKETS, WIDTH))
    for name, linear in (
        ("query", module.query_proj),
        ("key", module.key_proj),
        ("value", module.value_proj),
    ):
        kernel = getattr(ours, name).kernel.numpy()
        getattr(theirs, f"_{name}_dense").kernel.assign(kernel.reshape(WIDTH, HEADS, SIZE))
        set_linear(linear, kernel)
    theirs._output_dense.kernel.assign(ours.output_dense.kernel.numpy())
    set_linear(dense, ours.output_dense.kernel.numpy())
    both = torch.nn.ModuleList([module, dense])
    mask = torch.ones(batch, 1, length, length, dtype=torch.bool)
    ones = np.ones((batch, length, length), bool)
    rows = torch.tensor(table)
    positions = modeling_deberta_v2.build_relative_position(
        torch.empty(length, 1), torch.empty(length, 1), BUCKETS, MAX_DISTANCE
    )

    def run_torch(x):  # the module fails without a mask
        context, _ = module(x, mask, relative_pos=positions, rel_embeddings=rows)
        return [dense(context)]

    def run_hub(x):  # the layer fails without a mask
        return theirs(x, rel_embeddings=table[None], attention_mask=ones)

    def run_ours(x):
        return ours(x, position_table=table)

    found = run_ours(x)
    agree("disentangled, keras-hub", found, run_hub(x))
    agree("disentangled, transformers", found, run_torch(torch.tensor(x))[0].detach())
    return {
        "tfnlp disentangled": keras_pair(run_ours, ours, x),
        "keras-hub disentangled": keras_pair(run_hub, theirs, x),
        "transformers disentangled": torch_pair(run_torch, both, x),
    }


def set_linear(linear, kernel):
    import torch

    with torch.no_grad():
        linear.weight.copy_(torch.tensor(kernel.T))
        if linear.bias is not None:
            linear.bias.zero_()


def relative(batch, length):
    """Build Transformer-XL's attention without memory: bidirectional and causal."""
    from tfnlp.layers import RelativeAttention

    x = inputs(batch, length)
    layer = RelativeAttention(HEADS, SIZE)
    layer(x)
    return {
        "tfnlp relative": keras_pair(layer, layer, x),
        "tfnlp relative, causal": keras_pair(lambda x: layer(x, use_causal_mask=True), layer, x),
    }


def two_stream(batch, length):
    """Build XLNet's attention: the content stream alone, and both streams."""
    import keras_hub.src.models.xlnet.relative_attention as hub
    import numpy as np
    import torch
    import transformers

    from tfnlp.layers import TwoStreamAttention

    x = inputs(batch, length)
    ours = TwoStreamAttention(HEADS, SIZE)
    ours(x)
    theirs = hub.TwoStreamRelativeAttention(num_heads=HEADS, key_dim=SIZE)
    theirs.build(x.shape)
    config = transformers.XLNetConfig(
        vocab_size=8, d_model=WIDTH, n_layer=1, n_head=HEADS, d_inner=8, dropout=0.0
    )
    model = transformers.XLNetModel(config).eval()
    module = model.layer[0].rel_attn
    module.layer_norm = torch.nn.Identity()
    split = (WIDTH, HEADS, SIZE)
    for name, other, parameter in (
        ("query", "query", module.q),
        ("key", "key", module.k),
        ("value", "value", module.v),
        ("position", "encoding", module.r),
    ):
        kernel = getattr(ours, name).kernel.numpy().reshape(split)
        getattr(theirs, f"_{other}_dense").kernel.assign(kernel)
        parameter.data.copy_(torch.tensor(kernel))
    kernel = ours.output_dense.kernel.numpy().T.reshape(split)
    theirs._output_dense.kernel.assign(kernel)
    module.o.data.copy_(torch.tensor(kernel))
    content_bias, position_bias = ours.content_bias.numpy(), ours.position_bias.numpy()
    module.r_w_bias.data.copy_(torch.tensor(content_bias))
    module.r_r_bias.data.copy_(torch.tensor(position_bias))
    positions = model.relative_positional_encoding(length, length, bsz=batch)
    hub_positions = np.ascontiguousarray(positions.transpose(0, 1).numpy())

    def run_ours(x, streams):  # streams differ, else TensorFlow would merge equal products
        return ours(x, -x if streams == 2 else None)

    def run_hub(x, streams):
        g = -x if streams == 2 else None
        content, query = theirs(x, content_bias, position_bias, hub_positions, query_stream=g)
        return content if streams == 1 else (content, query)

    def run_torch(x, streams):
        h = x.transpose(0, 1)
        g = -h if streams == 2 else None
        outputs = module(h, g, None, None, positions, None)
        # The transformers module adds the residual, which costs little; subtract it.
        pairs = zip(outputs[:streams], (h, g)[:streams], strict=True)
        return [(y - z).transpose(0, 1) for y, z in pairs]

    pairs = {}
    for streams, name in ((1, "content stream"), (2, "two-stream")):
        found = run_ours(x, streams)
        found = found if streams == 1 else found[1]
        expected = run_hub(x, streams)
        agree(f"{name}, keras-hub", found, expected if streams == 1 else expected[1])
        agree(f"{name}, transformers", found, run_torch(torch.tensor(x), streams)[-1].detach())
        pairs |= {
            f"tfnlp {name}": keras_pair(lambda x, s=streams: run_ours(x, s), ours, x),
            f"keras-hub {name}": keras_pair(lambda x, s=streams: run_hub(x, s), theirs, x),
            f"transformers {name}": torch_pair(lambda x, s=streams: run_torch(x, s), module, x),
        }
    return pairs


def time_tflite():
    """Time 4 blocks of each attention in TFLite on one thread, with fixed and dynamic length."""
    import numpy as np
    import tensorflow as tf
    from ai_edge_litert.interpreter import Interpreter

    from distill.export.conversion import to_tflite

    def runner(name, length):
        model = blocks(name, length)
        specs = [tf.TensorSpec((1, length, TFLITE_WIDTH), name="x")]
        call = {"serving_default": (lambda x: {"y": model(x, training=False)}, specs)}
        interpreter = Interpreter(model_content=to_tflite(model, call, "float32"), num_threads=1)
        index = interpreter.get_input_details()[0]["index"]
        interpreter.resize_tensor_input(index, (1, TFLITE_LENGTH, TFLITE_WIDTH))
        interpreter.allocate_tensors()
        x = np.random.default_rng(0).normal(size=(1, TFLITE_LENGTH, TFLITE_WIDTH))
        x = x.astype("float32")
        interpreter.set_tensor(index, x)
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        agree(f"{name}, TFLite and Keras", found, model(x))
        return interpreter.invoke

    figures = {}
    for length in (TFLITE_LENGTH, None):
        names = ["plain", "disentangled", "relative"]
        if length:  # keras-hub's layer does not convert with a dynamic length
            names.append("keras-hub disentangled")
        times = medians({name: runner(name, length) for name in names})
        open_or_fixed = "fixed" if length else "open"
        print(
            f"\nTFLite, {TFLITE_LAYERS} blocks of {TFLITE_WIDTH}, {TFLITE_LENGTH} tokens, "
            f"length {open_or_fixed}: ms"
        )
        for name, ms in times.items():
            print(f"  {name:32} {ms:7.2f}   {ms / times['plain']:5.2f} times plain")
            figures[f"{name}, length {open_or_fixed}"] = {
                "ms": ms,
                "times_plain": ms / times["plain"],
            }
    return figures


def blocks(name, length):
    """Build a post-norm encoder over embeddings, (B, L, 312) to (B, L, 312)."""
    import keras
    import keras_hub.src.models.deberta_v3.disentangled_self_attention as hub

    from tfnlp import layers

    size = TFLITE_WIDTH // HEADS
    inputs = keras.Input((length, TFLITE_WIDTH))
    table = layers.RelativePositionTable(MAX_DISTANCE, BUCKETS, normalize=True)(inputs)
    # keras-hub's layer fails without a mask.
    ones = keras.ops.ones_like(inputs[..., :1], dtype="bool")  # (B, L, 1)
    x = inputs
    for _ in range(TFLITE_LAYERS):
        if name == "plain":
            y = layers.MultiHeadAttention(HEADS, size)(x)
        elif name == "relative":
            y = layers.RelativeAttention(HEADS, size)(x)
        elif name == "disentangled":
            layer = layers.DisentangledAttention(
                HEADS, size, max_distance=MAX_DISTANCE, num_buckets=BUCKETS, share_att_key=True
            )
            y = layer(x, position_table=table)
        else:
            layer = hub.DisentangledSelfAttention(
                HEADS, TFLITE_WIDTH, MAX_DISTANCE, bucket_size=BUCKETS, dropout=0.0
            )
            # The bucket computation needs Flex ops (int64 Sign and Abs): use a constant.
            buckets = keras.ops.convert_to_numpy(layer._get_rel_pos(length))
            layer._get_rel_pos = lambda _, buckets=buckets: buckets
            rows = keras.ops.expand_dims(table, 0)
            y = layer(x, rel_embeddings=rows, attention_mask=ones)
        x = keras.layers.LayerNormalization()(x + y)
        x = keras.layers.LayerNormalization()(x + layers.FeedForward(1200)(x))
    return keras.Model(inputs, x)


def time_long():
    """Measure time and peak memory of a training step at 4,096 tokens in separate processes."""
    import numpy as np

    figures = {}
    print(f"\ntraining step at {LONG} tokens: peak MB over the start, seconds")
    for name in ("plain", "relative", "disentangled"):
        runs = {"whole": [], "in blocks": []}
        for _ in range(FLAGS.rounds):
            for way, block_size in (("whole", 0), ("in blocks", BLOCK_SIZE)):
                result = subprocess.run(
                    [sys.executable, "-m", "benchmarks.attention_long", name, str(block_size)],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
                )
                runs[way].append(tuple(map(float, result.stdout.split())))
        found = {}
        for way, values in runs.items():
            megabytes, seconds = np.median(values, axis=0)
            found[way] = {"megabytes": megabytes, "seconds": seconds}
            print(f"  {name}, {way}: {megabytes:.0f} MB, {seconds:.2f} s")
        # Ratios are taken within a round, since the machine's load changes between rounds.
        ratios = np.array(runs["in blocks"]) / np.array(runs["whole"])
        memory, slower = np.median(ratios, axis=0)
        times = ", ".join(f"{x:.2f}" for x in sorted(ratios[:, 1]))
        print(f"  {name}: {memory:.2f} of the memory, {slower:.2f} of the time ({times})")
        figures[name] = found | {"memory": memory, "time": slower, "times": list(ratios[:, 1])}
    return figures


if __name__ == "__main__":
    entry_point.run(main)
