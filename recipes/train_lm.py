"""Trains a recurrent language model on text, over characters or subword tokens.

    python -m recipes.train_lm --corpus=shakespeare.txt --cell=lstm --output_dir=runs/lstm
    python -m recipes.generate --model_dir=runs/lstm/best --text="ROMEO:" \\
        --search=sample --temperature=0.8
    python -m recipes.evaluate_lm --model_dir=runs/lstm/best --texts=other.txt

It is trained by truncated backpropagation through segments of --max_length tokens, each of which
starts from the state at the end of the one before. --dev, or else the last tenth of the text, is
evaluated after each epoch: val_loss is in nats per token, which is a character unless
--tokenizer=bpe. Over subword tokens:

    python -m recipes.train_lm --corpus='news/*.txt' --tokenizer=bpe --cell=gru --num_layers=2 \\
        --output_dir=runs/gru

OUTPUT_DIR/best is the folder of the last epoch, for `pretrain --model_dir` or a classifier. The
same command resumes a stopped or killed run, which ends with the same weights. `pretrain` trains
language models of other families (GPT-2, Transformer-XL).
"""

from absl import flags, logging

import tfnlp
from recipes.flags import data_flags, dataclass_flags, model_flags, training_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group, refuse_beside
from recipes.shell.input_checks import named_files
from tfnlp import configs, corpora, objectives, training
from tfnlp.training.run.training_config import PretrainingConfig
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
# Largest vocabulary by kind of tokenizer.
SIZES = {"characters": 2000, "bpe": 8000}
with group("Corpus"):
    flags.DEFINE_list(
        "corpus",
        None,
        "Text files, or quoted patterns of files: .tsv, .csv, .json, .jsonl or .parquet with a "
        "document in each row, or plain text; or with .gz.",
    )
    flags.DEFINE_list(
        "dev", None, "Files, likewise, to evaluate on; the last tenth of --corpus if not given."
    )
    data_flags.define_further_dev_flag()
    data_flags.define_document_flags("files")
    flags.mark_flag_as_required("corpus")
with group("Model"):
    fields = ("cell", "num_layers", "hidden_dim", "dropout", "tie_embeddings")
    dataclass_flags.define(configs.RecurrentConfig, *fields, num_layers=1, hidden_dim=512)
    flags.DEFINE_enum(
        "tokenizer", None, list(SIZES), "Kind of tokenizer; characters if not given."
    )
    flags.DEFINE_integer(
        "vocabulary_size", None, "Largest vocabulary; if not given 2000, or 8000 for bpe.", 10
    )
    flags.DEFINE_string(
        "tokenizer_dir", None, "Folder of a tokenizer; trained on --corpus if not given."
    )
training_flags.define_training_flags(
    epochs=10, learning_rate=2e-3, max_length="Tokens of a segment of truncated backpropagation."
)
with group("Training"):
    dataclass_flags.define(PretrainingConfig, "on_nan")


def check_flags():
    """Raise an InputError for conflicting flags."""
    training_flags.training_config()
    if FLAGS.tokenizer_dir:
        flag = f"tokenizer_dir={FLAGS.tokenizer_dir}"
        refuse_beside(("tokenizer", "vocabulary_size"), f"{flag}, whose tokenizer has its own")


def learn_tokenizer(texts):
    """Train a tokenizer of --tokenizer on texts."""
    kind = FLAGS.tokenizer or "characters"
    size = FLAGS.vocabulary_size or SIZES[kind]
    tokenizer, _ = tfnlp.text.train_tokenizer(texts, kind, size, "gpt2")
    logging.info("Learned %d tokens.", tokenizer.vocabulary_size)
    return tokenizer


def make_corpus(objective, texts, tokenizer, held_out=None):
    """Encode texts; `held_out` is the name of those to evaluate on.

    Raises:
        InputError: if the texts have no token, or held out ones are too short for the objective.
    """
    corpus = objectives.corpus_of(texts, tokenizer, sentences="lines")
    if held_out:
        try:
            objective.batches(corpus, tokenizer, FLAGS.batch_size, FLAGS.max_length, shuffle=False)
        except InputError as e:
            raise InputError(f"{held_out}: {e}") from None
    return corpus


def main():
    check_flags()
    texts = data_flags.read_documents(FLAGS.corpus)
    if FLAGS.dev:
        data_flags.warn_of_shared_corpora({"corpus": FLAGS.corpus, "dev": FLAGS.dev})
        dev = data_flags.read_documents(FLAGS.dev)
    else:
        texts, dev = corpora.hold_out(texts)
    further_texts = {
        name: data_flags.read_documents(paths)
        for name, paths in named_files("further_dev").items()
    }
    config, run = training_flags.start_run(PretrainingConfig)
    tokenizer = model_flags.find_tokenizer(learn_tokenizer, texts)
    model_flags.keep_tokenizer(run, tokenizer)
    model_config = dataclass_flags.read(
        configs.RecurrentConfig,
        vocabulary_size=tokenizer.vocabulary_size,
        pad_token_id=tokenizer.pad_token_id,
    )
    reading = objectives.reading_settings(FLAGS.corpus, FLAGS.documents, FLAGS.max_length)
    objective = objectives.CausalLM(memory=True)  # the memory is the recurrent state
    objective.check(model_config, tokenizer)
    corpus = make_corpus(objective, texts, tokenizer)
    name = "The tenth of `corpus` that is held out"
    name = f"dev={','.join(FLAGS.dev)}" if FLAGS.dev else name
    held_out = make_corpus(objective, dev, tokenizer, name)
    further_dev = {
        name: make_corpus(objective, further, tokenizer, f"further_dev={name}")
        for name, further in further_texts.items()
    }
    with training.make_strategy(FLAGS.strategy).scope():
        training.Pretraining(
            objective,
            training.start_models(objective, model_config),
            tokenizer,
            data=training.Splits(corpus, held_out, FLAGS.max_length, further_dev=further_dev),
            config=config,
            run=run,
            task_settings=reading | {"texts": len(texts)},
        ).run_all()
    logging.info("Have it write: python -m recipes.generate --model_dir=%s --text=...", run.best)


if __name__ == "__main__":
    entry_point.run(main)
