"""Training speed of encoders, compared with keras-hub and transformers in one process.

    python -m benchmarks.encoders --output_dir=runs/encoders

Four layers of BERT-base's width on 8 x 128 tokens, forward and backward, without dropout and
without an optimizer; BERT, ALBERT, DeBERTa v3 and XLNet. Rounds alternate; figures are medians,
the rate of matrix products that each reaches (the products of BERT's arithmetic over the time),
and ratios. The machine's own rate is that of one product of (8 * 128, 768) and (768, 3072) and
of both of its gradients; beside it stands that of BERT's products alone, in their own shapes, with
nothing between them. Building and loading times are those of a first call.

Needs `.[benchmarks]`.
"""

import pathlib
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write encoders.json into.")
flags.DEFINE_string("model_dir", None, "Folder whose loading is timed, if given.")
flags.DEFINE_list("families", ["bert", "albert", "deberta_v3", "xlnet"], "What to measure.")
flags.DEFINE_integer("rounds", 7, "Rounds.", 1)
flags.DEFINE_integer("repeats", 2, "Steps of each in a round.", 1)
flags.mark_flag_as_required("output_dir")

BATCH, LENGTH, LAYERS, WIDTH, HEADS, INNER, VOCABULARY = 8, 128, 4, 768, 12, 3072, 1000


def main():
    entry_point.load_tensorflow()
    import keras

    from tfnlp.models import SIZES, build_model
    from tfnlp.utils.files import write_json

    path = pathlib.Path(FLAGS.output_dir) / "encoders.json"
    figures = {"build_seconds": timed(lambda: build_model(SIZES["bert_base"]))}
    print(f"BERT-base builds in {figures['build_seconds']:.2f} s")
    if FLAGS.model_dir:
        from tfnlp.checkpoints import load_model

        figures["load_seconds"] = timed(lambda: load_model(FLAGS.model_dir))
        print(f"{FLAGS.model_dir} loads in {figures['load_seconds']:.2f} s")
    products = {"large product": product_step(), "BERT's products": bert_products_step()}
    for family in FLAGS.families:
        keras.backend.clear_session()
        steps = dict(products)
        if family == "xlnet":
            steps["XLNet's products"] = bert_products_step(positions=True)
        steps["tfnlp"] = tfnlp_step(family)
        steps["keras-hub"] = keras_hub_step(family)
        steps["transformers"] = transformers_step(family)
        ms = medians(steps)
        rates = {name: flops() / ms[name] / 1e6 for name in steps}
        rates["large product"] = product_flops() / ms["large product"] / 1e6
        print(f"\n{family}: ms, GFLOP/s, times tfnlp")
        for name in steps:
            ratio = "" if name == "large product" else f"{ms[name] / ms['tfnlp']:6.2f}"
            print(f"  {name:16} {ms[name]:8.1f} {rates[name]:8.0f} {ratio}")
        figures[family] = {"ms": ms, "gflops": rates}
        write_json(path, figures)


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def medians(steps):
    """Return each step's milliseconds, the median over alternating rounds."""
    import numpy as np

    found = {name: [] for name in steps}
    for round_ in range(FLAGS.rounds + 1):
        for name, step in steps.items():
            seconds = timed(lambda step=step: [step() for _ in range(FLAGS.repeats)])
            if round_:  # the first round warms up
                found[name].append(seconds / FLAGS.repeats * 1e3)
    return {name: float(np.median(times)) for name, times in found.items()}


def flops():
    """Return the FLOPs of the products in BERT's four layers, forward and backward."""
    tokens = BATCH * LENGTH
    projections = 2 * tokens * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER)
    attention = 2 * 2 * tokens * LENGTH * WIDTH
    return 3 * LAYERS * (projections + attention)


def product_flops():
    return 3 * 2 * BATCH * LENGTH * WIDTH * INNER


def product_gradients(x, kernel):
    """Return both gradients of x @ kernel, with the product itself as upstream gradient."""
    import tensorflow as tf

    y = tf.matmul(x, kernel)
    return [tf.matmul(y, kernel, transpose_b=True), tf.matmul(x, y, transpose_a=True)]


def product_step():
    import tensorflow as tf

    x = tf.random.normal((BATCH * LENGTH, WIDTH))
    kernel = tf.random.normal((WIDTH, INNER))
    return tf.function(lambda: product_gradients(x, kernel))


def bert_products_step(positions=False):
    """Return a step that computes the products counted by `flops`, layers independently.

    With `positions`, the step also computes the products of XLNet's relative scores: it projects
    as many positions as there are tokens, which sines and cosines allow, with one score for each
    key.
    """
    import tensorflow as tf

    tokens, size = BATCH * LENGTH, WIDTH // HEADS
    layers = []
    for _ in range(LAYERS):
        shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, INNER), (INNER, WIDTH)]
        pairs = [(tf.random.normal((tokens, n)), tf.random.normal((n, m))) for n, m in shapes]
        heads = (BATCH, HEADS, LENGTH, size)
        qkv = [tf.random.normal(heads) for _ in range(3)]
        sinusoids = tf.random.normal((LENGTH, WIDTH)), tf.random.normal((WIDTH, WIDTH))
        layers.append((pairs, qkv, sinusoids))

    @tf.function
    def step():
        found = []
        for pairs, (q, k, v), (sinusoids, kernel) in layers:
            for pair in pairs:
                found += product_gradients(*pair)
            scores = tf.matmul(q, k, transpose_b=True)
            found += [tf.matmul(scores, k), tf.matmul(scores, q, transpose_a=True)]
            found += product_gradients(scores, v)
            if positions:
                r = tf.matmul(sinusoids, kernel)
                found += [tf.matmul(sinusoids, r, transpose_a=True)]
                r = tf.reshape(r, (1, HEADS, LENGTH, size))
                scores = tf.matmul(q, r, transpose_b=True)
                found += [tf.matmul(scores, r), tf.matmul(scores, q, transpose_a=True)]
        return found

    return step


def token_ids():
    import numpy as np

    return np.random.default_rng(0).integers(1, VOCABULARY, (BATCH, LENGTH)).astype("int32")


def keras_step(model, inputs, output):
    """Return a training step of a Keras model, without the optimizer."""
    import tensorflow as tf

    inputs = {key: tf.constant(value) for key, value in inputs.items()}
    variables = [v.value for v in model.trainable_variables]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            x = output(model(inputs, training=True))
            loss = tf.reduce_mean(x * x)
        return tape.gradient(loss, variables)

    return step


def tfnlp_step(family):
    import dataclasses

    import numpy as np

    from tfnlp.models import SIZES, build_model

    name = {"deberta_v3": "deberta_v3_base"}.get(family, f"{family}_base")
    config = dataclasses.replace(
        SIZES[name],
        vocabulary_size=VOCABULARY,
        num_layers=LAYERS,
        dropout=0.0,
        attention_dropout=0.0,
    )
    ids = token_ids()
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    }
    return keras_step(build_model(config), inputs, lambda out: out["sequence_output"])


def keras_hub_step(family):
    import keras_hub
    import numpy as np

    sizes = {
        "vocabulary_size": VOCABULARY,
        "num_layers": LAYERS,
        "num_heads": HEADS,
        "hidden_dim": WIDTH,
        "intermediate_dim": INNER,
        "dropout": 0.0,
    }
    models = keras_hub.models
    backbone = {
        "bert": lambda: models.BertBackbone(**sizes),
        "albert": lambda: models.AlbertBackbone(embedding_dim=128, **sizes),
        "deberta_v3": lambda: models.DebertaV3Backbone(bucket_size=256, **sizes),
        "xlnet": lambda: models.XLNetBackbone(**sizes),
    }[family]()
    ids = token_ids()
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    if "segment_ids" in backbone.input:
        inputs["segment_ids"] = np.zeros_like(ids)

    def output(found):
        return found["sequence_output"] if isinstance(found, dict) else found

    return keras_step(backbone, inputs, output)


def transformers_step(family):
    import torch
    import transformers

    sizes = {
        "vocab_size": VOCABULARY,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    deberta = {
        "relative_attention": True,
        "position_buckets": 256,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": False,
    }
    xlnet = {
        "vocab_size": VOCABULARY,
        "d_model": WIDTH,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "d_inner": INNER,
        "dropout": 0.0,
    }
    model = {
        "bert": lambda: transformers.BertModel(transformers.BertConfig(**sizes)),
        "albert": lambda: transformers.AlbertModel(
            transformers.AlbertConfig(embedding_size=128, **sizes)
        ),
        "deberta_v3": lambda: transformers.DebertaV2Model(
            transformers.DebertaV2Config(**sizes, **deberta)
        ),
        "xlnet": lambda: transformers.XLNetModel(transformers.XLNetConfig(**xlnet)),
    }[family]()
    model.train()
    ids = torch.tensor(token_ids()).long()
    mask = torch.ones_like(ids)

    def step():
        model.zero_grad()
        x = model(input_ids=ids, attention_mask=mask).last_hidden_state
        (x * x).mean().backward()

    return step


if __name__ == "__main__":
    entry_point.run(main)
