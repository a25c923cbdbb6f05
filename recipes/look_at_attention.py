"""Shows where each head of a model looks, on one HTML page that needs no network.

    python -m recipes.look_at_attention --model_dir=runs/teacher/best \\
        --text="a fine film" --text="a film that is not fine" --output_dir=runs/attention

Of a pair of texts, or of a translator with the translation (its own unless --pair is given):

    python -m recipes.look_at_attention --model_dir=runs/translator/best \\
        --text="A man in a red shirt." --pair="Ein Mann in einem roten Hemd." \\
        --output_dir=runs/alignment

A teacher beside its student, layer by layer:

    python -m recipes.look_at_attention --model_dir=runs/student/best \\
        --teacher_dir=runs/teacher/best --text="a fine film" --output_dir=runs/attention

OUTPUT_DIR/attention.html opens in any browser: every head, before and after the softmax, the terms
of relative positions apart, both streams of an XLNet, position encodings, and gradient times input
beside each head, because attention alone is no explanation. OUTPUT_DIR/attention.svg is a picture
of the first text, the mean of each layer's heads.
"""

import pathlib

from absl import flags, logging

import tfnlp
from distill.learning.layer_map import resolve_layer_map
from recipes.flags import distillation_flags
from recipes.flags.model_flags import load_with_tokenizer
from recipes.shell import entry_point
from recipes.shell.command_line import refuse_without
from tfnlp import checkpoints, generation, plots
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_text

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of a model, or its name on Hugging Face's Hub.")
flags.DEFINE_multi_string("text", None, "A text.")
flags.DEFINE_multi_string(
    "pair", [], "Second text of a pair, or the translation, one for each --text."
)
flags.DEFINE_string("teacher_dir", None, "Folder of a teacher, to stand beside the model.")
flags.DEFINE_list(
    "layer_map",
    "uniform",
    "Teacher's layer for each of the model's, counted from 0, such as 1,3,5; or uniform, last, "
    "first or alternate.",
)
flags.DEFINE_string("output_dir", None, "Folder to write attention.html and attention.svg into.")
flags.mark_flags_as_required(["model_dir", "text", "output_dir"])


def check_flags():
    """Raise an InputError for conflicting flags."""
    refuse_without(["layer_map"], "teacher_dir")
    if FLAGS.pair and len(FLAGS.pair) != len(FLAGS.text):
        raise InputError(
            f"--pair is given {len(FLAGS.pair)} times and --text {len(FLAGS.text)} times; give "
            "one pair for each text."
        )


def read_pairs(model, tokenizer):
    """Return the second text of each text, or None; the translations of a translator."""
    if FLAGS.pair or model.head != "sequence_to_sequence":
        return FLAGS.pair or [None] * len(FLAGS.text)
    translate = generation.Translator(model, tokenizer, search=generation.Greedy())
    return [best.text for best, *_ in translate(FLAGS.text)]


def main():
    check_flags()
    folder = pathlib.Path(FLAGS.output_dir)
    entry_point.load_tensorflow()
    model, tokenizer = load_with_tokenizer(FLAGS.model_dir)
    texts = list(zip(FLAGS.text, read_pairs(model, tokenizer), strict=True))
    labels = checkpoints.read_labels(FLAGS.model_dir)
    attentions = [tfnlp.inspection.attention_of(model, tokenizer, *each, labels) for each in texts]
    beside = {}
    if FLAGS.teacher_dir:
        teacher, of_teacher = load_with_tokenizer(FLAGS.teacher_dir)
        shown = [tfnlp.inspection.attention_of(teacher, of_teacher, *each) for each in texts]
        layers = [tfnlp.models.config_of(each).num_layers for each in (teacher, model)]
        layer_map = resolve_layer_map(distillation_flags.layer_map(), *layers)
        beside = {"teachers": shown, "layer_map": layer_map}
    name = "/".join(pathlib.Path(FLAGS.model_dir).parts[-2:])
    page = plots.attention_page(attentions, title=f"Attention of {name}", **beside)
    page.save(folder / "attention.html")
    write_text(folder / "attention.svg", page.svg)
    for sentence in page.summary:
        logging.info("%s", sentence)
    size = (folder / "attention.html").stat().st_size / 1e6
    logging.info("Wrote %s, %.1f MB.", folder / "attention.html", size)


if __name__ == "__main__":
    entry_point.run(main)
