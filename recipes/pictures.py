"""Plots of a model's internals: alignments, gradients over time, a cell's activations.

Which words of a source are behind each word of its translation, which is the model's own unless
--target is given:

    python -m recipes.pictures --picture=alignment --model_dir=runs/translator/best \\
        --text="A man in a red shirt." --output=alignment.png

How the gradient of the last token's loss vanishes over the tokens before it, in several models:

    python -m recipes.pictures --picture=gradients --model_dir=runs/rnn/best,runs/lstm/best \\
        --input=test.txt --length=100 --output=gradients.png

What one cell of a recurrent language model holds after each token of a text, the first 4,000:

    python -m recipes.pictures --picture=activations --model_dir=runs/lstm/best \\
        --input=test.txt --unit=7 --output=cell.png

The numbers are written beside the picture, as .npz.
"""

from absl import flags, logging

import tfnlp
from recipes import common
from recipes.command_line import no_effect
from tfnlp import checkpoints, generation, plots
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_writable

FLAGS = flags.FLAGS
# Most tokens in a plot of activations: fifty lines of characters.
MOST_TOKENS = 4000
PICTURES = ("alignment", "gradients", "activations")
# Flags that apply to one kind of picture only.
OWN_FLAGS = {
    "alignment": ("target",),
    "gradients": ("length", "pieces"),
    "activations": ("layer", "unit"),
}
flags.DEFINE_enum("picture", None, PICTURES, "What is shown.")
flags.DEFINE_list(
    "model_dir", None, "Folder of a model; several with commas between, of gradients."
)
flags.DEFINE_string("text", None, "The text.")
flags.DEFINE_string("input", None, "File of the text, in place of --text.")
flags.DEFINE_string("target", None, "The translation; the model's own if not given. Of alignment.")
flags.DEFINE_integer(
    "length", None, "Tokens that gradients go back; 50 if not given. Of gradients.", 1
)
flags.DEFINE_integer(
    "pieces", None, "Pieces of the text to take means over; 16 if not given. Of gradients.", 1
)
flags.DEFINE_integer(
    "layer", None, "Layer of the cell, from 0 on; the last if not given. Of activations.", 0
)
flags.DEFINE_integer(
    "unit", None, "Number of the cell; the one that varies most if not given. Of activations.", 0
)
flags.DEFINE_string("output", None, "The picture to write, .png.")
flags.mark_flags_as_required(["picture", "model_dir", "output"])


def check_flags():
    """Raise an InputError for conflicting flags."""

    if (FLAGS.text is None) == (FLAGS.input is None):
        raise InputError("Give either --text or --input.")
    if not FLAGS.output.endswith(".png"):
        raise InputError(f"output={FLAGS.output} must end in .png.")
    for picture, names in OWN_FLAGS.items():
        for name in names:
            if FLAGS[name].value is not None and picture != FLAGS.picture:
                raise no_effect(name, f"with picture={FLAGS.picture}")
    if len(FLAGS.model_dir) > 1 and FLAGS.picture != "gradients":
        raise InputError(f"picture={FLAGS.picture} is of one model; give one `model_dir`.")


def load(folder):
    """Load a folder's model and its tokenizer."""

    tokenizer, model = (
        tfnlp.text.load_tokenizer(folder),
        checkpoints.load_model(folder, checkpoints.read_head(folder)),
    )
    tfnlp.models.check_vocabulary(tokenizer, model)
    return model, tokenizer


def read_text():
    """Return the text of --text, or of the file --input."""
    import pathlib

    if FLAGS.text is not None:
        return FLAGS.text
    try:
        return pathlib.Path(FLAGS.input).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"input={FLAGS.input} cannot be read: {e}.") from None


def draw_alignment():
    """Plot the alignment of a translation; return the attention weights."""

    model, tokenizer = load(FLAGS.model_dir[0])
    tfnlp.inspection.check_attends(model)
    target = FLAGS.target
    if target is None:
        target = generation.Translator(model, tokenizer, search=generation.Greedy())(
            [read_text()]
        )[0][0].text
        logging.info("The translation: %s", target)
    end = model.text_config.end_token_id
    of_target, source_end = tfnlp.text.with_target(tokenizer, None, end)
    source, target = (
        list(each.encode_closed([text], last)[0].token_ids)
        for each, text, last in ((tokenizer, read_text(), source_end), (of_target, target, end))
    )
    found = tfnlp.inspection.alignments(model, source, target[:-1])
    names = (
        tfnlp.inspection.token_texts(tokenizer, source),
        tfnlp.inspection.token_texts(of_target, target),
    )
    plots.plot_alignments(found, *names, FLAGS.output)
    return found


def draw_gradients():
    """Plot gradient norms over time; return {model folder: norms}."""

    norms = {}
    for folder in FLAGS.model_dir:
        model, tokenizer = load(folder)
        ids = tfnlp.inspection.text_ids(tokenizer, read_text())
        norms[folder] = tfnlp.inspection.gradient_norms(
            model, tfnlp.inspection.windows(ids, FLAGS.length or 50, FLAGS.pieces or 16)
        )
    plots.plot_gradient_norms(norms, FLAGS.output)
    return norms


def draw_activations():
    """Plot the activations of one cell; return those of its whole layer."""

    model, tokenizer = load(FLAGS.model_dir[0])
    ids = tfnlp.inspection.text_ids(tokenizer, read_text())
    if len(ids) > MOST_TOKENS:
        logging.info("The first %d tokens are shown, of %d.", MOST_TOKENS, len(ids))
        ids = ids[:MOST_TOKENS]
    found = tfnlp.inspection.activations(model, ids, FLAGS.layer)
    unit = int(found.var(axis=0).argmax()) if FLAGS.unit is None else FLAGS.unit
    if unit >= found.shape[1]:
        raise InputError(f"unit={unit} must be from 0 to {found.shape[1] - 1}.")
    logging.info("The activations are of unit %d.", unit)
    plots.plot_activations(
        tfnlp.inspection.running_texts(tokenizer, ids), found[:, unit], FLAGS.output
    )
    return {"activations": found}


def main():
    import numpy as np

    check_writable(FLAGS.output)
    draw = {
        "alignment": draw_alignment,
        "gradients": draw_gradients,
        "activations": draw_activations,
    }
    numbers = FLAGS.output.removesuffix(".png") + ".npz"
    np.savez(numbers, **draw[FLAGS.picture]())
    logging.info("Wrote %s, and the numbers to %s.", FLAGS.output, numbers)


if __name__ == "__main__":
    common.run(main, check=check_flags)
