"""Plots of a model's internals: alignments, gradients over time, states, a cell's activations.

Alignment of a source with its translation, the model's own unless --target is given:

    python -m recipes.pictures --picture=alignment --model_dir=runs/translator/best \\
        --text="A man in a red shirt." --output=alignment.png

Norm of the gradient of the last token's loss at the tokens before it, in several models:

    python -m recipes.pictures --picture=gradients --model_dir=runs/rnn/best,runs/lstm/best \\
        --input=test.txt --length=100 --output=gradients.png

Activation of one cell of a recurrent language model after each of the first 4,000 tokens of a
text:

    python -m recipes.pictures --picture=activations --model_dir=runs/lstm/best \\
        --input=test.txt --unit=7 --output=cell.png

Hidden state of a recurrent language model after each of the first 100 tokens of a text, 40 units
(of an LSTM the tanh of its cells):

    python -m recipes.pictures --picture=states --model_dir=runs/gru/best \\
        --text="ROMEO: what light is this?" --output=states.png

Shares of an ELMo's layers in the tasks that were trained on it (equal ones would be a third):

    python -m recipes.pictures --picture=layers --model_dir=runs/entities/best,runs/films/best \\
        --output=layers.png

The numbers are written beside the picture, as .npz.
"""

import pathlib

import numpy as np
from absl import flags, logging

import tfnlp
from recipes.flags.model_flags import load_with_tokenizer
from recipes.shell import entry_point
from recipes.shell.command_line import check_output, refuse_beside, require_one
from tfnlp import generation, plots
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
# Most tokens in a plot of activations: fifty lines of characters.
MOST_TOKENS = 4000
# And in one of states: columns that can still be read.
MOST_STATES = 100
# Kinds of plots, with the flags that not every kind reads.
PICTURES = {
    "alignment": ("target",),
    "gradients": ("length", "pieces"),
    "activations": ("layer", "unit"),
    "states": ("layer",),
    "layers": (),
}
OF_SEVERAL = ("gradients", "layers")
flags.DEFINE_enum("picture", None, list(PICTURES), "Kind of plot.")
flags.DEFINE_list(
    "model_dir",
    None,
    "Folder of a model; with gradients or layers also several, separated by commas.",
)
flags.DEFINE_string("text", None, "The text.")
flags.DEFINE_string("input", None, "File of the text, in place of --text.")
flags.DEFINE_string("target", None, "Translation, with alignment; the model's own if not given.")
flags.DEFINE_integer(
    "length", 50, "Tokens that gradients are followed back over, with gradients.", 1
)
flags.DEFINE_integer("pieces", 16, "Pieces of the text to average over, with gradients.", 1)
flags.DEFINE_integer(
    "layer", None, "Layer, from 0, with activations or states; the last if not given.", 0
)
flags.DEFINE_integer(
    "unit", None, "Number of the cell, with activations; the one that varies most if not given.", 0
)
flags.DEFINE_string("output", None, "Picture to write, .png.")
flags.mark_flags_as_required(["picture", "model_dir", "output"])


def check_flags():
    """Raise an InputError for conflicting flags."""
    if FLAGS.picture == "layers":
        refuse_beside(("input", "text"), "picture=layers")
    else:
        require_one("input", "text")
    check_output("output", ".png")
    if len(FLAGS.model_dir) > 1 and FLAGS.picture not in OF_SEVERAL:
        raise InputError(f"picture={FLAGS.picture} is of one model; give one `model_dir`.")
    names = {name for names in PICTURES.values() for name in names}
    refuse_beside(sorted(names - {*PICTURES[FLAGS.picture]}), f"picture={FLAGS.picture}")


def read_text():
    """Return the text of --text, or of the file --input."""
    if FLAGS.text is not None:
        return FLAGS.text
    try:
        return pathlib.Path(FLAGS.input).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"input={FLAGS.input} cannot be read: {e}.") from None


def draw_alignment():
    """Plot the alignment of a translation; return the attention weights."""
    model, tokenizer = load_with_tokenizer(FLAGS.model_dir[0])
    tfnlp.inspection.check_attends(model)
    target = FLAGS.target
    if target is None:
        translate = generation.Translator(model, tokenizer, search=generation.Greedy())
        target = translate([read_text()])[0][0].text
        logging.info("The translation: %s", target)
    end = model.text_config.end_token_id
    of_target, source_end = tfnlp.text.with_target(tokenizer, None, end)
    source, target = (
        list(each.encode_closed([text], last)[0].token_ids)
        for each, text, last in ((tokenizer, read_text(), source_end), (of_target, target, end))
    )
    attention = tfnlp.inspection.alignments(model, source, target[:-1])
    sources = tfnlp.inspection.token_texts(tokenizer, source)
    targets = tfnlp.inspection.token_texts(of_target, target)
    plots.plot_alignments(attention, sources, targets, FLAGS.output)
    return attention


def draw_gradients():
    """Plot gradient norms over time; return {model folder: norms}."""
    norms = {}
    for folder in FLAGS.model_dir:
        model, tokenizer = load_with_tokenizer(folder)
        (ids,) = tfnlp.text.plain_ids(tokenizer, [read_text()])
        windows = tfnlp.inspection.windows(ids, FLAGS.length, FLAGS.pieces)
        norms[folder] = tfnlp.inspection.gradient_norms(model, windows)
    plots.plot_gradient_norms(norms, FLAGS.output)
    return norms


def draw_activations():
    """Plot the activations of one cell; return those of its whole layer."""
    pieces, activations = read_activations(MOST_TOKENS)
    unit = int(activations.var(axis=0).argmax()) if FLAGS.unit is None else FLAGS.unit
    if unit >= activations.shape[1]:
        raise InputError(f"unit={unit} must be from 0 to {activations.shape[1] - 1}.")
    logging.info("The activations are of unit %d.", unit)
    plots.plot_activations(pieces, activations[:, unit], FLAGS.output)
    return {"activations": activations}


def draw_states():
    """Plot the states of a layer along the text; return them."""
    pieces, states = read_activations(MOST_STATES)
    plots.plot_hidden_states(pieces, states, FLAGS.output)
    return {"states": states}


def read_activations(most):
    """Return the first `most` tokens of the text as strings, and a layer's activations."""
    model, tokenizer = load_with_tokenizer(FLAGS.model_dir[0])
    (ids,) = tfnlp.text.plain_ids(tokenizer, [read_text()])
    if len(ids) > most:
        logging.info("The first %d tokens are shown, of %d.", most, len(ids))
        ids = ids[:most]
    activations = tfnlp.inspection.activations(model, ids, FLAGS.layer)
    return tfnlp.inspection.running_texts(tokenizer, ids), activations


def draw_layers():
    """Plot the mix of each model's layers; return {model folder: shares}."""
    shares = {}
    for folder in FLAGS.model_dir:
        model, _ = load_with_tokenizer(folder)
        mixes = [layer for layer in model.layers if layer.name == "mix"]
        if not mixes:
            raise InputError(
                f"{folder} mixes no layers; give a classifier or tagger that was trained on an "
                "ELMo, such as finetune_tagger --model_dir=ELMO."
            )
        shares[folder] = np.asarray(mixes[0].shares())
    plots.plot_layer_shares(shares, FLAGS.output)
    return shares


def main():
    check_flags()
    entry_point.load_tensorflow()
    drawers = (draw_alignment, draw_gradients, draw_activations, draw_states, draw_layers)
    draw = dict(zip(PICTURES, drawers, strict=True))
    numbers = FLAGS.output.removesuffix(".png") + ".npz"
    np.savez(numbers, **draw[FLAGS.picture]())
    logging.info("Wrote %s, and the numbers to %s.", FLAGS.output, numbers)


if __name__ == "__main__":
    entry_point.run(main)
