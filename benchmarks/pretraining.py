"""Training steps of language models and translators, compared with keras-hub and transformers.

    python -m benchmarks.pretraining --output_dir=runs/pretraining
    python -m benchmarks.pretraining --parts=packed_masked,packed_causal --output_dir=runs/packing

Models of --layers layers of width --width on --batch_size texts of --length tokens, with a
vocabulary of 16,000, with dropout 0.1 and AdamW: a BERT that predicts 15 % of tokens, and a GPT-2
that predicts each next one. tfnlp and keras-hub's `BertMaskedLM` have logits at the predicted
positions, transformers has them at all. A Transformer, Marian there, with as many layers in its
decoder as in its encoder learns pairs of 32 and 32 tokens with smoothed labels. All train on the
same batch by what their users call (`fit`, and a loop in PyTorch), and take turns in one process.
Figures are medians; beside them stands the time of all cores, which other work on the machine
changes less. The products of the step alone, with both gradients of each and nothing between them,
are those of tfnlp's arithmetic.

The parts `packed_masked` and `packed_causal` compare steps of the same rows, as one text and as
--documents documents, each of which sees itself alone.

Then, on one core, the tokens a second of what comes before the step: tokenising, and reading from
a corpus and masking, for each objective on sentences; and how many times the step's they are.

Needs `.[benchmarks]`.
"""

import itertools
import os
import pathlib
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write pretraining.json into.")
flags.DEFINE_list("parts", ["masked", "causal", "translation", "input"], "What to measure.")
flags.DEFINE_integer("rounds", 5, "Rounds.", 1)
flags.DEFINE_integer("steps", 2, "Steps of each in a round.", 1)
flags.DEFINE_integer("batch_size", 64, "Texts in a batch.", 1)
flags.DEFINE_integer("length", 128, "Tokens of a text.", 8)
flags.DEFINE_integer("documents", 4, "Documents in a packed row.", 1)
flags.DEFINE_integer("layers", 4, "Layers.", 1)
flags.DEFINE_integer("width", 256, "Width; a head has 64 of it.", 64)
flags.mark_flag_as_required("output_dir")

VOCABULARY, SHARE, DROPOUT = 16_000, 0.15, 0.1
# Tokens of each side of a pair, and the translation's label smoothing.
PAIR_LENGTH, SMOOTHING = 32, 0.1
RATE = 1e-4


def main():
    entry_point.load_tensorflow()
    from tfnlp.utils.files import write_json

    path = pathlib.Path(FLAGS.output_dir) / "pretraining.json"
    figures = {}
    for part in FLAGS.parts:
        if part == "input":
            figures[part] = measure_input(figures.get("masked"))
        else:
            figures[part] = measure_steps(part)
        write_json(path, figures)


def measure_steps(part):
    """Measure and print a part's tokens per second and seconds per step of each library.

    Returns:
        {library: tokens per second, and each round's seconds and core seconds per step}.
    """
    import numpy as np

    makers = {
        "masked": {
            "tfnlp": tfnlp_masked,
            "keras-hub": keras_hub_masked,
            "transformers": transformers_masked,
        },
        "causal": {
            "tfnlp": tfnlp_causal,
            "keras-hub": keras_hub_causal,
            "transformers": transformers_causal,
        },
        "translation": {"tfnlp": tfnlp_translation, "transformers": transformers_translation},
        "packed_masked": {"tfnlp": tfnlp_masked, "packed": lambda: tfnlp_masked(packed=True)},
        "packed_causal": {"tfnlp": tfnlp_causal, "packed": lambda: tfnlp_causal(packed=True)},
    }[part]
    steps = {name: make() for name, make in makers.items()}
    steps["products alone"] = products_step(part)
    seconds, core_seconds = ({name: [] for name in steps} for _ in range(2))
    for round_ in range(FLAGS.rounds + 1):
        for name, step in steps.items():
            start, core_start = time.perf_counter(), time.process_time()
            step()
            if round_:  # the first round warms up
                seconds[name].append((time.perf_counter() - start) / FLAGS.steps)
                core_seconds[name].append((time.process_time() - core_start) / FLAGS.steps)
    tokens = FLAGS.batch_size * (2 * PAIR_LENGTH if part == "translation" else FLAGS.length)
    found = {}
    medians, core_medians = (
        {name: float(np.median(x)) for name, x in times.items()}
        for times in (seconds, core_seconds)
    )
    print(f"\n{part}: tokens/s; ms a step (lowest, highest), tfnlp's rate over it; of all cores")
    for name, times in seconds.items():
        found[name] = {
            "tokens_per_second": tokens / medians[name],
            "seconds": times,
            "core_seconds": core_seconds[name],
        }
        columns = [f"{tokens / medians[name]:8.0f}", f"{medians[name] * 1e3:8.0f}"]
        columns.append(f"({min(times) * 1e3:.0f}, {max(times) * 1e3:.0f})".ljust(14))
        columns.append(f"{medians[name] / medians['tfnlp']:5.2f}")
        columns.append(f"{core_medians[name] * 1e3:8.0f}")
        columns.append(f"{core_medians[name] / core_medians['tfnlp']:5.2f}")
        print(f"  {name:16}", *columns)
    rate = flops(part) / medians["products alone"] / 1e9
    print(f"  the products alone reach {rate:.0f} GFLOP/s")
    return found


def predicted_positions():
    return round(SHARE * (FLAGS.length - 2))


def batch(part, packed=False):
    """Draw one batch without padding: a dict of inputs, and labels."""
    import numpy as np

    rng = np.random.default_rng(0)
    ids = rng.integers(5, VOCABULARY, (FLAGS.batch_size, FLAGS.length)).astype("int32")
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    }
    if packed:
        positions = np.arange(FLAGS.length) % -(-FLAGS.length // FLAGS.documents)
        inputs["positions"] = np.tile(positions.astype("int32"), (FLAGS.batch_size, 1))
    if part == "causal":
        return inputs, np.pad(ids[:, 1:], [(0, 0), (0, 1)], constant_values=-100)
    places = np.argsort(rng.random(ids.shape), 1)[:, : predicted_positions()]
    inputs["masked_positions"] = np.sort(places, 1).astype("int32")
    return inputs, np.take_along_axis(ids, inputs["masked_positions"], 1)


def pair_batch():
    """Draw one batch of pairs without padding: a dict of inputs, and labels."""
    import numpy as np

    rng = np.random.default_rng(0)
    shape = (FLAGS.batch_size, PAIR_LENGTH)
    sources, labels = (rng.integers(5, VOCABULARY, shape).astype("int32") for _ in range(2))
    inputs = {
        "encoder_token_ids": sources,
        "encoder_padding_mask": np.ones_like(sources),
        "decoder_token_ids": np.pad(labels[:, :-1], [(0, 0), (1, 0)]),
    }
    return inputs, labels


def fitted(model, inputs, *labels):
    """Return a function that fits a compiled model to one batch for `FLAGS.steps` steps."""
    import tensorflow as tf

    data = tf.data.Dataset.from_tensors((inputs, *labels)).cache().repeat(FLAGS.steps)
    return lambda: model.fit(data, verbose=0, shuffle=False)


def sizes():
    """Return the model sizes, by their names in tfnlp and keras-hub."""
    return {
        "vocabulary_size": VOCABULARY,
        "num_layers": FLAGS.layers,
        "num_heads": FLAGS.width // 64,
        "hidden_dim": FLAGS.width,
        "intermediate_dim": 4 * FLAGS.width,
        "dropout": DROPOUT,
    }


def tfnlp_masked(packed=False):
    from tfnlp.models import BertConfig, build_model
    from tfnlp.objectives import MaskedLM

    config = BertConfig(**sizes(), attention_dropout=DROPOUT, max_length=FLAGS.length)
    model = build_model(config, "masked_lm", packed=packed)
    return tfnlp_step(MaskedLM().trained(model), *batch("masked", packed))


def tfnlp_causal(packed=False):
    import keras

    from tfnlp.models import Gpt2Config, build_model

    config = Gpt2Config(**sizes(), attention_dropout=DROPOUT, max_length=FLAGS.length)
    model = build_model(config, "causal_lm", packed=packed)
    trained = keras.Model(model.input, {"logits": model.output["logits"]})
    return tfnlp_step(trained, *batch("causal", packed))


def tfnlp_translation():
    import keras

    from tfnlp.models import TransformerConfig, build_model

    model = build_model(
        TransformerConfig(**sizes(), max_length=FLAGS.length), "sequence_to_sequence"
    )
    trained = keras.Model(model.input, {"logits": model.output["logits"]})
    return tfnlp_step(trained, *pair_batch(), label_smoothing=SMOOTHING)


def tfnlp_step(model, inputs, labels, **options):
    from tfnlp.functional.weighted_losses import token_cross_entropy
    from tfnlp.training import make_optimizer

    def loss(labels, logits):
        return token_cross_entropy(labels, logits, **options)

    model.compile(make_optimizer(model, RATE), loss={"logits": loss}, jit_compile=False)
    return fitted(model, inputs, {"logits": labels})


def keras_hub_masked():
    import keras_hub

    backbone = keras_hub.models.BertBackbone(**sizes(), max_sequence_length=FLAGS.length)
    inputs, labels = batch("masked")
    inputs["mask_positions"] = inputs.pop("masked_positions")
    return keras_hub_step(keras_hub.models.BertMaskedLM(backbone), inputs, labels)


def keras_hub_causal():
    import keras_hub

    backbone = keras_hub.models.GPT2Backbone(**sizes(), max_sequence_length=FLAGS.length)
    inputs, labels = batch("causal")
    del inputs["segment_ids"]
    real = labels != -100
    # keras-hub's loss has no ignored label, so sample weights mask the last position.
    return keras_hub_step(
        keras_hub.models.GPT2CausalLM(backbone), inputs, labels * real, real.astype("float32")
    )


def keras_hub_step(model, inputs, *labels):
    import keras

    optimizer = keras.optimizers.AdamW(RATE, weight_decay=0.01, global_clipnorm=1.0)
    model.compile(optimizer)  # with keras-hub's default loss, metric and choice of XLA
    return fitted(model, inputs, *labels)


def transformers_masked():
    import numpy as np
    import transformers

    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        num_hidden_layers=FLAGS.layers,
        num_attention_heads=FLAGS.width // 64,
        hidden_size=FLAGS.width,
        intermediate_size=4 * FLAGS.width,
        max_position_embeddings=FLAGS.length,
    )
    inputs, labels = batch("masked")
    places = inputs.pop("masked_positions")
    whole = np.full_like(inputs["token_ids"], -100)
    np.put_along_axis(whole, places, labels, 1)
    return transformers_step(transformers.BertForMaskedLM(config), inputs, whole)


def transformers_causal():
    import transformers

    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_layer=FLAGS.layers,
        n_head=FLAGS.width // 64,
        n_embd=FLAGS.width,
        n_positions=FLAGS.length,
    )
    inputs, _ = batch("causal")
    del inputs["segment_ids"]
    # The model shifts the labels by one itself.
    return transformers_step(transformers.GPT2LMHeadModel(config), inputs, inputs["token_ids"])


def transformers_translation():
    import torch
    import transformers

    layers, heads, inner = FLAGS.layers, FLAGS.width // 64, 4 * FLAGS.width
    config = transformers.MarianConfig(
        vocab_size=VOCABULARY,
        d_model=FLAGS.width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        dropout=DROPOUT,
        max_position_embeddings=FLAGS.length,
        pad_token_id=0,
        decoder_start_token_id=0,
    )
    inputs, labels = pair_batch()
    inputs = {
        "input_ids": inputs["encoder_token_ids"],
        "attention_mask": inputs["encoder_padding_mask"],
        "decoder_input_ids": inputs["decoder_token_ids"],
    }
    inputs = {name: torch.tensor(x).long() for name, x in inputs.items()}
    labels, model = torch.tensor(labels).long(), transformers.MarianMTModel(config)

    def loss():
        logits = model(**inputs, use_cache=False).logits.flatten(0, 1)
        options = {"label_smoothing": SMOOTHING}
        return torch.nn.functional.cross_entropy(logits, labels.flatten(), **options)

    return torch_step(model, loss)


def transformers_step(model, inputs, labels):
    import torch

    from benchmarks.torch_inputs import torch_inputs

    inputs, labels = torch_inputs(inputs), torch.tensor(labels).long()
    return torch_step(model, lambda: model(**inputs, labels=labels).loss)


def torch_step(model, loss):
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    model.train()

    def train():
        for _ in range(FLAGS.steps):
            loss().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return train


def shapes(part):
    """Return the shapes of a step's products with weights, (rows, in, out) each."""
    tokens, width = FLAGS.batch_size * length(part), FLAGS.width
    attention = [(tokens, width, width)] * 4
    layer = [*attention, (tokens, width, 4 * width), (tokens, 4 * width, width)]
    if part == "translation":
        return FLAGS.layers * [*layer, *layer, *attention] + [(tokens, width, VOCABULARY)]
    if part.endswith("causal"):
        return FLAGS.layers * layer + [(tokens, width, VOCABULARY)]
    rows = FLAGS.batch_size * predicted_positions()
    return FLAGS.layers * layer + [(rows, width, width), (rows, width, VOCABULARY)]


def length(part):
    """Return the sequence length of attention, in tokens."""
    return PAIR_LENGTH if part == "translation" else FLAGS.length


def attentions(part):
    """Return the number of attention layers in the model."""
    return FLAGS.layers * (3 if part == "translation" else 1)


def flops(part):
    """Return the FLOPs of a step's matrix products, forward and backward, with attention's."""
    attention = attentions(part) * 2 * FLAGS.batch_size * length(part) ** 2 * FLAGS.width
    return 3 * 2 * (sum(a * b * c for a, b, c in shapes(part)) + attention)


def products_step(part):
    """Return a function that computes a step's matrix products `FLAGS.steps` times."""
    import tensorflow as tf

    pairs = {
        (a, b, c): (tf.random.normal((a, b)), tf.random.normal((b, c))) for a, b, c in shapes(part)
    }
    shape = (FLAGS.batch_size, FLAGS.width // 64, length(part), 64)
    q, k, v = (tf.random.normal(shape) for _ in range(3))

    def gradients(x, kernel):
        y = tf.matmul(x, kernel)
        both = tf.matmul(y, kernel, transpose_b=True), tf.matmul(x, y, transpose_a=True)
        return [tf.reduce_sum(g[..., 0]) for g in both]

    @tf.function
    def step():
        found = []
        for shape in shapes(part):
            with tf.control_dependencies(found[-1:]):
                x, kernel = (tf.identity(t) for t in pairs[shape])
                found += gradients(x, kernel)
        for _ in range(attentions(part)):
            with tf.control_dependencies(found[-1:]):
                own = tf.identity(q)
                scores = tf.matmul(own, k, transpose_b=True)
                found += [tf.reduce_sum(tf.matmul(scores, k)[..., 0])]
                found += [tf.reduce_sum(tf.matmul(scores, own, transpose_a=True)[..., 0])]
                found += gradients(scores, v)
        return tf.add_n(found)

    return lambda: [step() for _ in range(FLAGS.steps)]


def measure_input(masked):
    """Measure and print the tokens per second of the input pipeline on one core."""
    # Set before the tokenizers library starts its threads.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    whole = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(whole)})
    try:
        rates = input_rates()
    finally:
        os.sched_setaffinity(0, whole)
    step = masked and masked["tfnlp"]["tokens_per_second"]
    print("\ninput, on one core: tokens/s" + (", times the masked step's" if step else ""))
    for name, rate in rates.items():
        print(f"  {name:24} {rate:12.0f}" + (f" {rate / step:8.1f}" if step else ""))
    return rates


def input_rates():
    import numpy as np

    from tfnlp.objectives import Corpus, MaskedLM, NextSentence, SentenceOrder

    rng = np.random.default_rng(0)
    tokenizer, sentences = written_text(rng)
    found = {}
    start = time.perf_counter()
    encodings = tokenizer.encode(sentences)
    found["tokenising"] = len(encodings.token_ids) / (time.perf_counter() - start)
    bounds = itertools.pairwise(encodings.starts)
    ids = [encodings.token_ids[a + 1 : b - 1] for a, b in bounds]  # without special tokens
    corpus = Corpus.from_documents([ids[i : i + 20] for i in range(0, len(ids), 20)])
    objectives = {f"masked {units}": MaskedLM(units) for units in ("tokens", "words", "spans")}
    objectives |= {"next sentence": NextSentence(), "sentence order": SentenceOrder()}
    for name, objective in objectives.items():
        batches = objective.batches(corpus, tokenizer, FLAGS.batch_size, FLAGS.length)
        start, tokens = time.perf_counter(), 0
        for inputs, _ in batches.epoch(0):
            tokens += int(inputs["padding_mask"].sum())
        found[name] = tokens / (time.perf_counter() - start)
    return found


def written_text(rng):
    """Draw a tokenizer with `VOCABULARY` pieces, and 20,000 sentences of its words."""
    from tfnlp.text import WordPieceTokenizer

    letters = "abcdefghijklmnopqrstuvwxyz"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = dict.fromkeys([*letters, *(f"##{c}" for c in letters)])
    while len(pieces) < VOCABULARY - len(special):
        word = "".join(rng.choice(list(letters), rng.integers(2, 9)))
        pieces[word if rng.random() < 0.8 else f"##{word}"] = None
    tokenizer = WordPieceTokenizer([*special, *pieces])
    starts = [piece for piece in pieces if not piece.startswith("##")]
    rests = [piece[2:] for piece in pieces if piece.startswith("##")]
    sentences = []
    for size in rng.integers(5, 40, 20_000):
        words, ends = rng.choice(starts, size), rng.choice(rests, size)
        longer = rng.random(size) < 0.2
        words = [a + b if both else a for a, b, both in zip(words, ends, longer, strict=True)]
        sentences.append(" ".join(words))
    return tokenizer, sentences


if __name__ == "__main__":
    entry_point.run(main)
