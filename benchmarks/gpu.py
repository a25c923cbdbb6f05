"""Blocks and models in XLA, by JAX or TensorFlow, beside transformers and keras-hub on a GPU.

    python -m benchmarks.gpu --output_dir=runs/gpu
    KERAS_BACKEND=tensorflow python -m benchmarks.gpu --output_dir=runs/gpu_tensorflow
    python -m benchmarks.gpu --output_dir=runs/gpu --tiny    # a dry run, on any machine

One process, in which rounds alternate; figures are medians. A block is one of BERT-base's width
with its attention, a family 12 of them behind its embeddings: forward, and with all gradients,
without dropout and without an optimizer, 32 x 128 and 8 x 512 tokens, in float32 and in bfloat16.
Ours and keras-hub's families are compiled by `jax.jit`, or by `tf.function(jit_compile=True)`;
those of transformers run as they come and by `torch.compile`. All take of the GPU's memory what
they need.

Needs `.[benchmarks]`, a CUDA build of torch, and jax[cuda] or `.[cuda]`.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import pathlib
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write gpu.json into.")
flags.DEFINE_bool("tiny", False, "Small sizes and few rounds, to see that all of it runs.")
flags.DEFINE_bool("compile", True, "Whether transformers' run by torch.compile too.")
flags.DEFINE_list("families", ["bert", "albert", "deberta_v3", "xlnet"], "Models to measure.")
flags.DEFINE_list("blocks", ["bert", "deberta_v3", "xlnet"], "Blocks to measure.")
flags.DEFINE_multi_enum(
    "dtype", ["float32", "bfloat16"], ["float32", "bfloat16"], "Of the products; not of --tiny."
)
flags.DEFINE_list("shapes", ["32x128", "8x512"], "Texts and tokens of each; not of --tiny.")
flags.mark_flag_as_required("output_dir")

VOCABULARY, BUCKETS = 30_000, 256


def sizes():
    """Return width, heads, inner width, blocks, shapes (B, L), dtypes, rounds and repeats."""
    if FLAGS.tiny:
        return 32, 4, 64, 2, ((2, 16),), ("float32",), 1, 1
    shapes = [tuple(map(int, shape.split("x"))) for shape in FLAGS.shapes]
    return 768, 12, 3072, 12, shapes, FLAGS.dtype, 7, 5


def main():
    import keras
    import torch

    from tfnlp.utils.files import write_json

    torch.set_float32_matmul_precision("high")  # TF32, which XLA takes on a GPU
    keras_device = device_of_keras()
    gpu = torch.cuda.is_available() and keras_device == "gpu"
    if not gpu and not FLAGS.tiny:
        from tfnlp.utils.errors import InputError

        raise InputError(
            f"Keras runs by {keras.backend.backend()} on {keras_device} and torch "
            f"{'with' if torch.cuda.is_available() else 'without'} CUDA, but the figures are of a "
            "GPU; install both with CUDA, or give `tiny` for a dry run."
        )
    name = torch.cuda.get_device_name() if gpu else "CPU, a dry run"
    figures = {"device": name, "backend": keras.backend.backend()}
    print(f"{name}, Keras by {keras.backend.backend()}")
    *_, shapes, dtypes, _, _ = sizes()
    for dtype in dtypes:
        for shape in shapes:
            for what, names in (("block", FLAGS.blocks), ("family", FLAGS.families)):
                for family in names:
                    label = f"{what} {family} {shape[0]}x{shape[1]} {dtype}"
                    figures[label] = compare(label, what, family, shape, dtype, gpu)
                    write_json(pathlib.Path(FLAGS.output_dir) / "gpu.json", figures)


def device_of_keras():
    """Return "gpu" or "cpu", where Keras' backend computes."""
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    import jax

    return jax.default_backend()


def compare(label, what, family, shape, dtype, gpu):
    """Measure and print ms of forward, and of forward and backward, of each library."""
    import keras

    keras.backend.clear_session()
    keras.config.set_dtype_policy("mixed_bfloat16" if dtype == "bfloat16" else dtype)
    width, heads, inner, blocks, *_ = sizes()
    make = our_block if what == "block" else our_family
    pairs = {"tfnlp": compiled(*make(family, shape, width, heads, inner, blocks))}
    if what == "family":
        pairs["keras-hub"] = compiled(
            *keras_hub_family(family, shape, width, heads, inner, blocks)
        )
    module, call = theirs(what, family, shape, dtype, gpu)
    pairs["transformers"] = torch_pair(module, call, gpu)
    if FLAGS.compile:
        import torch

        torch._dynamo.reset()  # it compiles a function eight times at most
        pairs["transformers, compiled"] = torch_pair(module, torch.compile(call), gpu)
    times = [medians({name: pair[i] for name, pair in pairs.items()}) for i in range(2)]
    print(f"\n{label}: ms forward / with backward, times tfnlp")
    for name in pairs:
        ms = [t[name] for t in times]
        ratios = [t[name] / t["tfnlp"] for t in times]
        print(f"  {name:24} {ms[0]:8.2f} / {ms[1]:8.2f}   {ratios[0]:5.2f} / {ratios[1]:5.2f}")
    return {name: [t[name] for t in times] for name in pairs}


def medians(runs):
    """Return each function's milliseconds, the median over alternating rounds."""
    import numpy as np

    *_, rounds, repeats = sizes()
    found = {name: [] for name in runs}
    for step in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(repeats):
                run()
            if step:  # the first round compiles
                found[name].append((time.perf_counter() - start) / repeats * 1e3)
    return {name: float(np.median(times)) for name, times in found.items()}


def draw(shape, seed=0):
    import numpy as np

    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def token_ids(shape):
    import numpy as np

    return np.random.default_rng(0).integers(1, VOCABULARY, shape).astype("int32")


def compiled(layer, arguments):
    """Compile a Keras layer or model: functions for forward, and for all gradients."""
    import keras
    from keras import ops

    def loss_of(states):
        states = states["sequence_output"] if isinstance(states, dict) else states
        return ops.mean(ops.square(ops.cast(states, "float32")))

    if keras.backend.backend() == "tensorflow":
        return compiled_by_tensorflow(layer, arguments, loss_of)
    import jax

    trained = [v.value for v in layer.trainable_variables]
    others = [v.value for v in layer.non_trainable_variables]

    def forward(trained, arguments):
        return layer.stateless_call(trained, others, **arguments, training=False)[0]

    functions = jax.jit(forward), jax.jit(jax.grad(lambda *args: loss_of(forward(*args))))
    return [lambda f=f: jax.block_until_ready(f(trained, arguments)) for f in functions]


def compiled_by_tensorflow(layer, arguments, loss_of):
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")  # it warns of functions that are traced for each model
    trained = [v.value for v in layer.trainable_variables]

    @tf.function(jit_compile=True)
    def forward(arguments):
        return layer(**arguments, training=False)

    @tf.function(jit_compile=True)
    def gradients(arguments):
        with tf.GradientTape() as tape:
            loss = loss_of(layer(**arguments, training=False))
        return [tf.convert_to_tensor(x) for x in tape.gradient(loss, trained) if x is not None]

    def run(function):
        function(arguments)
        tf.test.experimental.sync_devices()

    return [lambda f=f: run(f) for f in (forward, gradients)]


def our_block(family, shape, width, heads, inner, _):
    from keras import ops

    from tfnlp.layers import DisentangledAttention, EncoderBlock, RelativeAttention

    size = width // heads
    attention, further = None, {}
    if family == "deberta_v3":
        attention = DisentangledAttention(
            heads, size, max_distance=512, num_buckets=BUCKETS, share_att_key=True
        )
        table = ops.convert_to_tensor(draw((2 * BUCKETS, width), 1))
        further = {"attention_arguments": {"position_table": table}}
    elif family == "xlnet":
        attention = RelativeAttention(heads, size, use_bias=False)
    block = EncoderBlock(heads, inner, attention=attention)
    x = ops.convert_to_tensor(draw((*shape, width)))
    block(x, **further)
    return block, {"inputs": x, **further}


def our_family(family, shape, width, heads, inner, blocks):
    from keras import ops

    from tfnlp.models import build_model, config_by_name

    fields = {"num_layers": blocks, "num_heads": heads, "hidden_dim": width}
    fields |= {"intermediate_dim": inner, "vocabulary_size": VOCABULARY}
    if family == "deberta_v3":
        fields["num_buckets"] = BUCKETS
    ids = ops.convert_to_tensor(token_ids(shape))
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ops.ones_like(ids)}
    return build_model(config_by_name(family, **fields)), {"inputs": inputs}


def keras_hub_family(family, shape, width, heads, inner, blocks):
    import keras_hub
    from keras import ops

    fields = {"num_layers": blocks, "num_heads": heads, "hidden_dim": width, "dropout": 0.0}
    fields |= {"intermediate_dim": inner, "vocabulary_size": VOCABULARY}
    names = {"bert": "Bert", "albert": "Albert", "deberta_v3": "DebertaV3", "xlnet": "XLNet"}
    further = {"albert": {"embedding_dim": 128}, "deberta_v3": {"bucket_size": BUCKETS}}
    make = getattr(keras_hub.models, f"{names[family]}Backbone")
    backbone = make(**fields | further.get(family, {}))
    ids = ops.convert_to_tensor(token_ids(shape))
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ops.ones_like(ids)}
    return backbone, {"inputs": {name: inputs[name] for name in backbone.input}}


def theirs(what, family, shape, dtype, gpu):
    """Build a transformers module, and a function that returns its hidden states."""
    import torch

    width, heads, inner, blocks, *_ = sizes()
    device = "cuda" if gpu else "cpu"
    common_sizes = {"num_attention_heads": heads, "hidden_size": width, "vocab_size": VOCABULARY}
    common_sizes |= {"intermediate_size": inner, "num_hidden_layers": blocks}
    make = their_block if what == "block" else their_family
    module, call = make(family, shape, common_sizes, device)
    module.to(device).eval()
    automatic = torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16")

    def cast():
        with automatic:
            return call()

    return module, cast


def their_config(family, sizes):
    import transformers

    if family == "xlnet":
        names = {"num_attention_heads": "n_head", "hidden_size": "d_model"}
        names |= {"intermediate_size": "d_inner", "num_hidden_layers": "n_layer"}
        return transformers.XLNetConfig(**{names.get(k, k): v for k, v in sizes.items()})
    if family == "deberta_v3":
        return transformers.DebertaV2Config(
            relative_attention=True,
            position_buckets=BUCKETS,
            max_relative_positions=512,
            share_att_key=True,
            norm_rel_ebd="layer_norm",
            pos_att_type=["c2p", "p2c"],
            position_biased_input=False,
            **sizes,
        )
    if family == "albert":
        return transformers.AlbertConfig(embedding_size=128, **sizes)
    return transformers.BertConfig(**sizes)


def their_block(family, shape, sizes, device):
    import torch
    from transformers.models.bert.modeling_bert import BertLayer
    from transformers.models.deberta_v2 import modeling_deberta_v2
    from transformers.models.xlnet.modeling_xlnet import XLNetLayer, XLNetModel

    config = their_config(family, sizes)
    width, length = sizes["hidden_size"], shape[1]
    x = torch.tensor(draw((*shape, width)), device=device)
    if family == "deberta_v3":
        module = modeling_deberta_v2.DebertaV2Layer(config)
        table = torch.tensor(draw((2 * BUCKETS, width), 1), device=device)
        row = torch.empty(length, 1, device=device)
        positions = modeling_deberta_v2.build_relative_position(row, row, BUCKETS, 512)
        mask = torch.ones(shape[0], 1, length, length, dtype=torch.bool, device=device)
        arguments = {"relative_pos": positions, "rel_embeddings": table}
        return module, lambda: module(x, mask, **arguments)[0]
    if family == "xlnet":
        module = XLNetLayer(config)
        positions = XLNetModel(config).relative_positional_encoding(length, length, shape[0])
        h, positions = x.transpose(0, 1), positions.to(device)
        arguments = {"output_g": None, "attn_mask_h": None, "attn_mask_g": None}
        arguments |= {"r": positions, "seg_mat": None}
        return module, lambda: module(h, **arguments)[0]
    config._attn_implementation = "sdpa"
    module = BertLayer(config)

    def run():
        found = module(x)
        return found[0] if isinstance(found, tuple) else found

    return module, run


def their_family(family, shape, sizes, device):
    import torch
    import transformers

    model = transformers.AutoModel.from_config(their_config(family, sizes))
    ids = torch.tensor(token_ids(shape), device=device).long()
    mask = torch.ones_like(ids)
    return model, lambda: model(input_ids=ids, attention_mask=mask).last_hidden_state


def torch_pair(module, call, gpu):
    """Return functions of a module: forward, and forward with all gradients."""
    import torch

    def wait():
        if gpu:
            torch.cuda.synchronize()

    def forward():
        with torch.no_grad():
            call()
        wait()

    def backward():
        module.zero_grad()
        call().float().square().mean().backward()
        wait()

    return forward, backward


if __name__ == "__main__":
    entry_point.run(main)
