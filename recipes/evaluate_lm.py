"""Measures how well a language model predicts texts.

    python -m recipes.evaluate_lm --model_dir=runs/gpt2/best --texts=test.txt --stride=64
    python -m recipes.evaluate_lm --model_dir=runs/transformer_xl/best --texts=test.txt \\
        --max_length=64 --memory_lengths=0,64,128,256
    python -m recipes.evaluate_lm --model_dir=runs/bert/best --texts=test.txt

A causal language model (GPT, GPT-2, Transformer-XL, recurrent networks) is measured by perplexity
and bits per character over all texts as one stream, with an end token after each text, which
counts as a character. Documents are separated as in the model's training by pretrain or train_lm,
by lines for other models, or by --documents. A masked language model (BERT and its kin) is
measured on each text by itself: by pseudo-perplexity, which masks each token in turn, and by the
accuracy at masked tokens. The figures are printed and written to OUTPUT_DIR/evaluation.json.
Perplexities of models with different vocabularies are not comparable; bits per character are,
unless many tokens are unknown to a tokenizer (`unknown_share`).
"""

import dataclasses

from absl import flags, logging

import tfnlp
from recipes.flags import data_flags, dataclass_flags, model_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group
from tfnlp import checkpoints, objectives, text
from tfnlp.utils.files import write_json

FLAGS = flags.FLAGS
model_flags.define_model_flag()
flags.DEFINE_string("tokenizer_dir", None, "Folder of the tokenizer, if not --model_dir.")
flags.DEFINE_string("output_dir", None, "Folder to write evaluation.json into.")
dataclass_flags.define(objectives.LmEvaluation)
with group("Texts"):
    flags.DEFINE_list(
        "texts",
        None,
        "Files of texts: .tsv, .csv, .json, .jsonl or .parquet, or plain text; or with .gz.",
    )
    data_flags.define_document_flags(None)
    FLAGS["documents"].help += " Those of the model's training, else lines, if not given."
    flags.mark_flag_as_required("texts")


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
    evaluation = dataclass_flags.read(objectives.LmEvaluation)
    entry_point.load_tensorflow()
    head = checkpoints.read_head(FLAGS.model_dir)
    if head == "pretraining":  # a masked LM with an additional head for pairs
        head = "masked_lm"
    objectives.check_evaluation(head, evaluation)
    tokenizer = text.load_tokenizer(FLAGS.tokenizer_dir or FLAGS.model_dir)
    model = checkpoints.load_model(FLAGS.model_dir, head)
    tfnlp.models.check_vocabulary(tokenizer, model)
    settings = checkpoints.read_task_settings(FLAGS.model_dir)
    documents = choose_documents(settings.get("documents"))
    texts = objectives.read_texts(FLAGS.texts, FLAGS.text_column, documents)
    max_length = evaluation.max_length or settings.get("max_length")
    evaluation = dataclasses.replace(evaluation, max_length=max_length)
    if head == "causal_lm":
        figures = objectives.evaluate_causal_lm(model, tokenizer, texts, evaluation)
    else:
        figures = objectives.evaluate_masked_lm(model, tokenizer, list(texts), evaluation)
    print(objectives.figures_table(figures))
    if output:
        read = {"model": FLAGS.model_dir, "texts": FLAGS.texts, "documents": documents}
        write_json(output, read | {"figures": figures})


if __name__ == "__main__":
    entry_point.run(main)
