"""Speed of generation, compared with transformers and keras-hub in one process.

    python -m benchmarks.generation --output_dir=runs/generation

A GPT-2 of 4 layers of width 256 with 16,000 tokens, of one weights in all three, continues prompts
of 32 tokens by 128: greedy with one prompt and with 16, and one prompt with 4 beams (which
keras-hub searches without an end or a norm of lengths). Rounds alternate; figures are medians, and
ratios of them. First calls, which compile, are timed apart. Beside them stand the time to read all
weights once, which each step must, and that of a step's products with them alone, nothing between.

Needs `.[benchmarks]`.
"""

import pathlib
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder to write generation.json into.")
flags.DEFINE_integer("rounds", 5, "Rounds.", 1)
flags.mark_flag_as_required("output_dir")

LAYERS, WIDTH, HEADS, VOCABULARY, PROMPT, NEW, BEAMS = 4, 256, 4, 16000, 32, 128, 4
# Number of prompts and beams of each case.
CASES = {"greedy, 1 prompt": (1, 1), "greedy, 16 prompts": (16, 1), "4 beams, 1 prompt": (1, 4)}


def main():
    entry_point.load_tensorflow()
    import numpy as np

    from tfnlp.models import Gpt2Config, build_model
    from tfnlp.utils.files import check_writable, write_json

    path = pathlib.Path(FLAGS.output_dir) / "generation.json"
    check_writable(path)
    config = Gpt2Config(
        vocabulary_size=VOCABULARY,
        num_layers=LAYERS,
        num_heads=HEADS,
        hidden_dim=WIDTH,
        intermediate_dim=4 * WIDTH,
        dropout=0.0,
    )
    model = build_model(config, "causal_lm")
    theirs, hub = transformers_model(model), keras_hub_model(model)
    figures = {}
    for name, (batch, beams) in CASES.items():
        prompts = np.random.default_rng(0).integers(5, VOCABULARY, (batch, PROMPT)).astype("int32")
        steps = {
            "tfnlp": tfnlp_step(model, prompts, beams),
            "transformers": transformers_step(theirs, prompts, beams),
            "keras-hub": keras_hub_step(hub, prompts, beams),
            "reading weights": reading_step(model),
            "bare products": products_step(batch * beams),
        }
        first, ms = measured(steps)
        steps_of = dict.fromkeys(steps, 1) | dict.fromkeys(
            ("reading weights", "bare products"), NEW
        )
        rates = {key: batch * NEW / (ms[key] * steps_of[key]) * 1e3 for key in steps}
        print(f"\n{name}: tokens a second, times tfnlp, first call")
        for key in steps:
            ratio = rates["tfnlp"] / rates[key]
            print(f"  {key:16} {rates[key]:8.0f} {ratio:6.2f} {first[key]:6.1f} s")
        figures[name] = {"tokens_per_second": rates, "first_call_seconds": first}
        write_json(path, figures)


def measured(steps):
    """Return each step's first call in seconds, and the median of later calls in ms."""
    import numpy as np

    times = {name: [] for name in steps}
    for _ in range(FLAGS.rounds + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - start)
    first = {name: seconds[0] for name, seconds in times.items()}
    return first, {name: float(np.median(seconds[1:])) * 1e3 for name, seconds in times.items()}


def tfnlp_step(model, prompts, beams):
    from tfnlp.generation import Beam, Constraints, Generator, Greedy
    from tfnlp.text.tokenizers.wordpiece import WordPieceTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(str, range(VOCABULARY - 4))]
    generator = Generator(
        model,
        WordPieceTokenizer(words),
        Greedy() if beams == 1 else Beam(beams),
        Constraints(min_new_tokens=NEW),
        max_new_tokens=NEW,
        batch_size=len(prompts),
    )
    rows = prompts.tolist()

    def step():
        for (text,) in generator.continue_ids(rows):
            assert len(text.token_ids) == NEW

    return step


def transformers_model(model):
    import tempfile

    import transformers

    from tfnlp.checkpoints import save_model

    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, folder)
        return transformers.GPT2LMHeadModel.from_pretrained(folder).eval()


def transformers_step(model, prompts, beams):
    import torch

    ids = torch.tensor(prompts).long()
    how = {"do_sample": False, "num_beams": beams, "max_new_tokens": NEW, "min_new_tokens": NEW}
    how |= {"eos_token_id": 3, "pad_token_id": 3}

    def step():
        with torch.no_grad():
            found = model.generate(ids, attention_mask=torch.ones_like(ids), **how)
        assert found.shape == (len(prompts), PROMPT + NEW)

    return step


def keras_hub_model(model):
    import keras_hub

    backbone = keras_hub.models.GPT2Backbone(
        VOCABULARY, LAYERS, HEADS, WIDTH, 4 * WIDTH, dropout=0.0, max_sequence_length=1024
    )
    return keras_hub.models.GPT2CausalLM(backbone)


def keras_hub_step(model, prompts, beams):
    import keras_hub
    import numpy as np

    ids = np.pad(prompts, ((0, 0), (0, NEW)))
    inputs = {"token_ids": ids, "padding_mask": np.pad(np.ones_like(prompts), ((0, 0), (0, NEW)))}
    samplers = keras_hub.samplers
    sampler = samplers.GreedySampler() if beams == 1 else samplers.BeamSampler(num_beams=beams)
    model.preprocessor = None
    model.compile(sampler=sampler)
    function = model.make_generate_function()

    def step():
        found = function(inputs, None)
        assert found["token_ids"].numpy().shape == (len(prompts), PROMPT + NEW)

    return step


def reading_step(model):
    """Return a function that reads each weight of a step once."""
    import tensorflow as tf

    weights = [w.value for w in model.weights if "position_table" not in w.path]
    sums = tf.function(lambda: tf.add_n([tf.reduce_sum(w) for w in weights]))
    return lambda: sums().numpy()


def products_step(rows):
    """Return a function that computes a step's weight products for some rows independently."""
    import tensorflow as tf

    shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    shapes = shapes * LAYERS + [(WIDTH, VOCABULARY)]
    pairs = [(tf.random.normal((rows, n)), tf.random.normal((n, m))) for n, m in shapes]
    products = tf.function(lambda: [tf.matmul(x, y) for x, y in pairs])
    return lambda: [x.numpy() for x in products()]


if __name__ == "__main__":
    entry_point.run(main)
