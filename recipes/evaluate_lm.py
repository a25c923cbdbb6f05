"""Measures how well a language model predicts texts.

    python -m recipes.evaluate_lm --model_dir=runs/gpt2/best --texts=test.txt --stride=64
    python -m recipes.evaluate_lm --model_dir=runs/transformer_xl/best --texts=test.txt \\
        --max_length=64 --memory_lengths=0,64,128,256
    python -m recipes.evaluate_lm --model_dir=runs/bert/best --texts=test.txt

Of a causal model (GPT, GPT-2, Transformer-XL, recurrent networks) the perplexity and the bits per
character, of all texts as one stream, in which an end token stands after each text and counts as a
character. A model that pretrain or train_lm wrote says what its documents were parted by, and the
texts are parted likewise; by lines of other models, or as --documents says. Of a
masked model (BERT and its kin) the pseudo-perplexity, for which each token is masked in turn, and
the share of hidden tokens that it finds, each text being by itself. The figures are printed, and
written to OUTPUT_DIR/evaluation.json. Perplexities of models with other vocabularies do not
compare; bits per character do, but not where many tokens are unknown to the tokenizer, of which
a model need not say which characters they were: `unknown_share` says how many.
"""

from absl import flags, logging

import tfnlp
from recipes import common
from recipes.command_line import group, no_effect
from tfnlp import checkpoints, objectives, text
from tfnlp.utils.files import check_writable, write_json

FLAGS = flags.FLAGS
common.define_model_flag()
flags.DEFINE_string(
    "tokenizer_dir", None, "Folder of the model's tokenizer, where that is not in --model_dir."
)
flags.DEFINE_string("output_dir", None, "Folder to write evaluation.json into.")
flags.DEFINE_integer(
    "max_length",
    None,
    "Tokens that are read together; if not given as many as pretrain read, or of other models as "
    "there are positions, or 128 where these have no end.",
    2,
)
flags.DEFINE_integer(
    "stride",
    None,
    "Tokens by which a window of a causal model without memory moves on, so that the others of "
    "each are context; --max_length if not given.",
    1,
)
flags.DEFINE_list(
    "memory_lengths",
    None,
    "Positions that a Transformer-XL keeps in its memory, one figure for each; 0 for none. As its "
    "config says if not given.",
)
flags.DEFINE_integer(
    "batch_size",
    8,
    "Windows, lanes with a memory, each of which begins without what is before it, or texts that "
    "are read at a time.",
    1,
)
flags.DEFINE_float("masked_share", 0.15, "Share of the tokens that are hidden.", 0, 1)
flags.DEFINE_bool(
    "pseudo_perplexity", True, "Whether to mask each token in turn, a pass of the model for each."
)
flags.DEFINE_integer("seed", 0, "Seed of what is hidden.", 0)


@group("Texts")
def define_text_flags():
    """Define the flags of the evaluation texts."""
    flags.DEFINE_list(
        "texts",
        None,
        "Files of texts: .tsv, .csv, .json or .jsonl, or plain text; or with .gz.",
    )
    common.define_document_flags(None, "as the model learned, or lines where it does not say")
    flags.mark_flag_as_required("texts")


define_text_flags()


def check_masking(head):
    """Raise an InputError for masking flags with a causal LM, which masks no token."""
    for flag in ("masked_share", "pseudo_perplexity", "seed"):
        if head == "causal_lm" and not FLAGS[flag].using_default_value:
            where = "on a causal language model, of which no token is hidden"
            raise no_effect(flag, where)


def choose_documents(learned):
    """Return the document separator: --documents, else the model's `learned` one, else lines.

    Warn if --documents differs from the separator that the model was trained with.
    """
    if FLAGS.documents and learned and FLAGS.documents != learned:
        logging.warning(
            "The texts are parted by --documents=%s, but those that the model learned by %s.",
            FLAGS.documents,
            learned,
        )
    return FLAGS.documents or learned or "lines"


def main():

    output = FLAGS.output_dir and f"{FLAGS.output_dir}/evaluation.json"
    if output:
        check_writable(output)
    head = checkpoints.read_head(FLAGS.model_dir)
    if head == "pretraining":  # a masked LM with an additional head for pairs
        head = "masked_lm"
    objectives.check_evaluation(head, FLAGS.memory_lengths, FLAGS.stride)
    check_masking(head)
    tokenizer = text.load_tokenizer(FLAGS.tokenizer_dir or FLAGS.model_dir)
    model = checkpoints.load_model(FLAGS.model_dir, head)
    tfnlp.models.check_vocabulary(tokenizer, model)
    settings = checkpoints.read_task_settings(FLAGS.model_dir)
    documents = choose_documents(settings.get("documents"))
    texts = objectives.read_texts(FLAGS.texts, FLAGS.text_column, documents)
    max_length = FLAGS.max_length or settings.get("max_length")
    reading = (max_length, FLAGS.stride, FLAGS.batch_size)
    if head == "causal_lm":
        figures = objectives.evaluate_causal_lm(
            model, tokenizer, texts, FLAGS.memory_lengths, *reading
        )
    else:
        figures = objectives.evaluate_masked_lm(
            model,
            tokenizer,
            list(texts),
            max_length,
            FLAGS.masked_share,
            FLAGS.pseudo_perplexity,
            FLAGS.batch_size,
            FLAGS.seed,
        )
    print(objectives.figures_table(figures))
    if output:
        read = {"model": FLAGS.model_dir, "texts": FLAGS.texts, "documents": documents}
        write_json(output, read | {"figures": figures})


if __name__ == "__main__":
    common.run(main)
