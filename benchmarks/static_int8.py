"""Difference of a static int8 file from its Keras model, after each block.

    python -m benchmarks.static_int8 --model_dir=runs/student/best --input=SST2/dev.tsv \\
        --output_dir=runs/static_int8

A BERT classifier is calibrated on --calibrate texts of --input, unless it was trained under
rounding, and exported at --length tokens. The next --count texts go through both. What leaves each
block is compared as the 8-bit integers that the next layer reads, and so are the log odds of the
first two classes: with Keras computing as LiteRT's integers do, and with its products in floats
(as they are in training).
"""

import contextlib
import pathlib

import numpy as np
from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of a BERT's classifier.")
flags.DEFINE_string("input", None, "File of texts.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_string("output_dir", None, "Folder for the file and static_int8.json.")
flags.DEFINE_integer("length", 32, "Tokens of each text, padded or cut.", 3)
flags.DEFINE_integer("calibrate", 200, "Texts to calibrate with.", 16)
flags.DEFINE_integer("count", 200, "Texts to compare.", 1)
flags.mark_flags_as_required(["model_dir", "input", "output_dir"])


def main():
    entry_point.load_tensorflow()
    from distill.compression.calibration import calibrate
    from distill.export.options import Export
    from distill.export.tflite import export_tflite
    from tfnlp.checkpoints import load_model, read_labels
    from tfnlp.layers import get_ranges
    from tfnlp.quantization.fake_quantization import converting
    from tfnlp.text import load_tokenizer, read_examples
    from tfnlp.utils.files import write_json

    folder = pathlib.Path(FLAGS.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    model, tokenizer = load_model(FLAGS.model_dir, "classifier"), load_tokenizer(FLAGS.model_dir)
    texts = read_examples(FLAGS.input, FLAGS.text_column, label_column=None).texts
    first, others = texts[: FLAGS.calibrate], texts[FLAGS.calibrate :][: FLAGS.count]
    if not get_ranges(model):
        encodings = tokenizer.encode(first, max_length=FLAGS.length)
        model = calibrate(model, encodings, tokenizer.pad_token_id)
    path = folder / "static_int8.tflite"
    how = {"fixed_lengths": [FLAGS.length], "fixed_only": True}
    labels = read_labels(FLAGS.model_dir)
    export_tflite(model, path, tokenizer, labels, Export("static_int8", FLAGS.length, **how))
    encodings = tokenizer.encode(others, max_length=FLAGS.length)
    inputs = [padded(encoding, tokenizer.pad_token_id) for encoding in encodings]
    steps = block_steps(model)
    expected = of_file(path, inputs, steps)
    figures = {}
    for name, context in (("integers", contextlib.nullcontext), ("floats", converting)):
        with context(*[model] * (context is converting)):
            found = of_model(model, inputs, steps)
        figures[name] = compare(expected, found)
        show(name, figures[name])
    write_json(folder / "static_int8.json", figures)


def padded(encoding, pad):
    """Return one text's padded inputs, (1, L) each, by their names in the file."""
    ids, size = encoding.token_ids, FLAGS.length - len(encoding.token_ids)
    columns = {
        "ids": [*ids, *[pad] * size],
        "mask": [*[1] * len(ids), *[0] * size],
        "segment_ids": [*encoding.segment_ids, *[0] * size],
    }
    return {name: np.array([x], "int32") for name, x in columns.items()}


def block_steps(model):
    """Return (scale, zero point) of each block's output, as its next layer quantises it."""
    from tfnlp.layers import get_ranges

    ranges = get_ranges(model)
    names = [f"encoder_{i}/attention/query" for i in range(1, model.text_config.num_layers)]
    found = []
    for name in (*names, "pooler"):
        low, high = ranges[f"{name}/inputs"]
        step = (high - low) / 255
        found.append((step, round(-128 - low / step)))
    return found


def of_file(path, inputs, steps):
    """Run the file on each text.

    Returns:
        For each text the blocks' integer outputs, a list of (L, D), its log odds and its number
        of tokens.
    """
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    tensors = []
    for step, _ in steps:
        fitting = (
            x["index"]
            for x in interpreter.get_tensor_details()
            if x["dtype"] is np.int8
            and len(x["shape"]) == 3
            and len(x["quantization_parameters"]["scales"]) == 1
            and abs(x["quantization_parameters"]["scales"][0] / step - 1) < 1e-5
        )
        tensors.append(next(fitting))
    given = {
        x["name"].removeprefix("run_").split(":")[0]: x for x in interpreter.get_input_details()
    }
    (answer,) = interpreter.get_output_details()
    found = []
    for text in inputs:
        for name, x in given.items():
            interpreter.set_tensor(x["index"], text[name])
        interpreter.invoke()
        states = [interpreter.get_tensor(i)[0].astype(int) for i in tensors]
        p = interpreter.get_tensor(answer["index"])[0]
        found.append((states, float(np.log(p[1] / p[0])), int(text["mask"].sum())))
    return found


def of_model(model, inputs, steps):
    """Run the Keras model on each text; return the same as `of_file`."""
    import keras

    blocks = [model.get_layer(f"encoder_{i}").output for i in range(len(steps))]
    whole = keras.Model(model.input, [*blocks, model.output["logits"]])
    found = []
    for text in inputs:
        names = {"token_ids": "ids", "padding_mask": "mask", "segment_ids": "segment_ids"}
        *states, logits = whole({name: text[of] for name, of in names.items()}, training=False)
        states = [
            np.clip(np.round(np.asarray(x)[0] / step) + zero, -128, 127)
            for x, (step, zero) in zip(states, steps, strict=True)
        ]
        found.append((states, float(logits[0, 1] - logits[0, 0]), int(text["mask"].sum())))
    return found


def compare(expected, found):
    """Compare the results of file and model, after each block and in the log odds.

    Returns:
        For each block: share of differing integers, their difference (RMS and largest, in steps)
        and share of texts without any. For log odds: RMS difference, the file's standard
        deviation, and shares of equal log odds and labels.
    """
    blocks = []
    for i in range(len(expected[0][0])):
        apart = [np.abs(a[0][i] - b[0][i])[: a[2]] for a, b in zip(expected, found, strict=True)]
        every = np.concatenate([x.ravel() for x in apart])
        blocks.append(
            {
                "differ": float(np.mean(every > 0)),
                "rms": float(np.sqrt(np.mean(every**2))),
                "most": int(every.max()),
                "same_texts": float(np.mean([not x.any() for x in apart])),
            }
        )
    odds = np.array([(a[1], b[1]) for a, b in zip(expected, found, strict=True)])
    error = np.abs(odds[:, 0] - odds[:, 1])
    return {
        "blocks": blocks,
        "log_odds_rms": float(np.sqrt(np.mean(error**2))),
        "log_odds_deviation": float(odds[:, 0].std()),
        "same_log_odds": float(np.mean(error < 1e-4)),
        "same_labels": float(np.mean((odds[:, 0] > 0) == (odds[:, 1] > 0))),
    }


def show(name, figures):
    """Print the result of `compare`."""
    print(f"Keras by {name}:")
    for i, block in enumerate(figures["blocks"], 1):
        print(
            "  after block {i}: {differ:.2%} of integers differ, {rms:.3f} steps (rms), "
            "{most} at most; {same_texts:.1%} of texts the same".format(i=i, **block)
        )
    print(
        "  log odds apart by {log_odds_rms:.4f} (rms; their deviation is "
        "{log_odds_deviation:.2f}), the same for {same_log_odds:.1%} of texts; "
        "labels {same_labels:.1%}".format(**figures)
    )


if __name__ == "__main__":
    entry_point.run(main)
