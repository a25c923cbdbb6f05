"""Pretrains a model of any family on unlabelled text, from scratch or from a folder.

Continue with a pretrained model on text of your own domain, before fine-tuning:

    python -m recipes.pretrain --model_dir=MiniLM-L6 --corpus=reviews.txt --documents=lines \\
        --dev=held_out.txt --epochs=3 --learning_rate=5e-5 --output_dir=runs/domain
    python -m recipes.finetune_classifier --model_dir=runs/domain/best ...

Pretrain from scratch with ELECTRA's objective on a corpus from prepare_corpus, in 100 epochs of
1,000 steps:

    python -m recipes.pretrain --objective=replaced_tokens --family=electra --corpus=corpus \\
        --tokenizer_dir=tokenizer --epochs=100 --steps_per_epoch=1000 --output_dir=runs/electra

Pretrain a recurrent network (--family=rnn, lstm or gru) by truncated backpropagation through
segments of --max_length tokens, each of which starts from the state at the end of the one before:

    python -m recipes.pretrain --objective=causal_lm --family=lstm --hidden_dim=512 \\
        --corpus=shakespeare.txt --documents=files --tokenizer_dir=characters --max_length=128 \\
        --batch_size=32 --epochs=20 --learning_rate=2e-3 --output_dir=runs/lstm

OUTPUT_DIR/best is a Hugging Face folder of the last epoch, for any fine-tuning; the generator of
an ELECTRA is in OUTPUT_DIR/generator. To continue with both on other text:

    python -m recipes.pretrain --objective=replaced_tokens --model_dir=runs/electra/best \\
        --generator_dir=runs/electra/generator --corpus=reviews.txt --output_dir=runs/domain

The same command resumes a stopped or killed run, which ends with the same weights.
"""

import dataclasses
import os
import pathlib

from absl import flags, logging

from recipes import data_flags, entry_point, model_flags, training_flags
from recipes.command_line import group, no_effect
from tfnlp import checkpoints, corpora, objectives, training
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
# The class of each objective in `tfnlp.objectives`.
OBJECTIVES = {
    "masked_lm": "MaskedLM",
    "next_sentence": "NextSentence",
    "sentence_order": "SentenceOrder",
    "replaced_tokens": "ReplacedTokens",
    "permutation_lm": "PermutationLM",
    "causal_lm": "CausalLM",
}
# Flags that apply to some objectives only.
MASKING = ("masked_share", "hide", "longest_span")
OWN_FLAGS = {
    "masked_lm": MASKING,
    "next_sentence": MASKING,
    "sentence_order": MASKING,
    "replaced_tokens": ("masked_share", "generator_size", "discriminator_weight", "generator_dir"),
    "permutation_lm": ("memory_length", "reuse_length", "predict_one_in"),
    "causal_lm": ("memory_length",),
}


@group("Objective")
def define_objective_flags():
    """Define the flags of the objective."""
    flags.DEFINE_enum("objective", "masked_lm", list(OBJECTIVES), "Pretraining objective.")
    flags.DEFINE_float(
        "masked_share",
        None,
        "Share of masked tokens; 0.15 if not given. Not with permutation_lm and causal_lm.",
        0,
        1,
    )
    flags.DEFINE_enum(
        "hide",
        None,
        ["tokens", "words", "spans"],
        "Unit of masking; if not given spans of words with sentence_order, else tokens. With "
        "masked_lm, next_sentence and sentence_order.",
    )
    flags.DEFINE_integer(
        "longest_span", None, "Most words in a span; 3 if not given. With --hide=spans.", 1
    )
    flags.DEFINE_float(
        "generator_size",
        None,
        "Size of the generator, as a share of the width (ELECTRA; 0.25 if not given) or of the "
        "layers (DeBERTa; 0.5). With replaced_tokens.",
        0,
        1,
    )
    flags.DEFINE_float(
        "discriminator_weight",
        None,
        "Weight of the discriminator's loss; 50 if not given. With replaced_tokens.",
        0,
    )
    flags.DEFINE_string(
        "generator_dir",
        None,
        "Folder of the generator that was trained with the discriminator of --model_dir, such as "
        "OUTPUT_DIR/generator of its run; if not given random weights, with embeddings that "
        "start as the discriminator's. With replaced_tokens.",
    )
    define_memory_flags()


def define_memory_flags():
    """Define the flags of language models with a memory."""
    flags.DEFINE_integer(
        "memory_length",
        None,
        "Tokens of the memory that a segment takes over from the one before; no memory if not "
        "given. With causal_lm (Transformer-XL) and permutation_lm. A recurrent network's state "
        "is always taken over.",
        1,
    )
    flags.DEFINE_integer(
        "reuse_length",
        None,
        "Tokens between the starts of segments with a memory; half of --max_length if not given. "
        "With permutation_lm.",
        1,
    )
    flags.DEFINE_integer(
        "predict_one_in",
        None,
        "K: one in K tokens is predicted; 6 if not given. With permutation_lm.",
        1,
    )


@group("Corpus")
def define_corpus_flags():
    """Define the flags of the unlabelled texts."""
    flags.DEFINE_list(
        "corpus",
        None,
        "Folder from prepare_corpus; or text files, or quoted patterns of files, that fit in "
        "memory: .tsv, .csv, .json or .jsonl with a document in each row, or plain text; or with "
        ".gz.",
    )
    flags.DEFINE_list(
        "dev", None, "Corpus, likewise, to evaluate on after each epoch; none if not given."
    )
    data_flags.define_document_flags("blank_lines")
    flags.DEFINE_enum(
        "sentences",
        "split",
        ["split", "lines"],
        "Separator of sentences: rules for English and Korean (split), or lines.",
    )
    flags.mark_flag_as_required("corpus")


@group("Training")
def define_step_flags():
    """Define the flags of steps that only pretraining has."""
    flags.DEFINE_integer(
        "steps_per_epoch",
        None,
        "Steps of an epoch, which then need not end with a pass over the corpus; those of a pass "
        "if not given. The training has --epochs times as many.",
        1,
    )
    training_flags.define_on_nan_flag()


define_objective_flags()
define_corpus_flags()
model_flags.define_model_flags()
training_flags.define_training_flags(epochs=1, learning_rate=1e-4)
define_step_flags()


def check_flags():
    """Raise an InputError for flags that conflict or have no effect."""
    training_flags.training_config()
    model_flags.check_start_flags()
    check_objective_flags()
    check_family()
    check_corpus_flags()


def check_objective_flags():
    """Raise an InputError for flags of another objective, or without a flag that they need."""
    name = FLAGS.objective
    for flag in {flag for known in OWN_FLAGS.values() for flag in known}:
        if FLAGS[flag].value is not None and flag not in OWN_FLAGS[name]:
            raise no_effect(flag, f"with objective={name}")
    hide = FLAGS.hide or ("spans" if name == "sentence_order" else "tokens")
    if FLAGS.longest_span is not None and hide != "spans":
        raise no_effect("longest_span", f"with hide={hide}", "give hide=spans, or leave it out")
    if FLAGS.reuse_length and not FLAGS.memory_length:
        raise no_effect("reuse_length", "without a memory", "give a `memory_length`")
    if FLAGS.generator_dir and not FLAGS.model_dir:
        raise no_effect(
            "generator_dir", "without the discriminator", "give its folder as `model_dir`"
        )
    if FLAGS.generator_dir and FLAGS.generator_size:
        raise no_effect("generator_size", f"beside generator_dir={FLAGS.generator_dir}")


def check_family():
    """Raise an InputError if --family does not fit the objective."""
    if FLAGS.model_dir or FLAGS.size:
        return  # the family is known once the config is read
    family, fit = (
        (FLAGS.family or "bert").replace("-", "_"),
        model_flags.FAMILIES_OF[FLAGS.objective],
    )
    if family not in fit:
        raise InputError(
            f"objective={FLAGS.objective} does not fit the family {family}; give family="
            f"{' or '.join(fit)}."
        )
    if FLAGS.memory_length and family not in (*model_flags.WITH_MEMORY, *model_flags.RECURRENT):
        (other,) = set(fit) & set(model_flags.WITH_MEMORY)
        raise InputError(
            f"memory_length={FLAGS.memory_length} does not fit the family {family}, which has no "
            f"memory; give family={other}, or leave it out."
        )


def check_corpus_flags():
    """Raise an InputError for text flags if all corpora are prepared ones."""
    if not all(map(os.path.isdir, [*FLAGS.corpus, *(FLAGS.dev or [])])):
        return
    for flag in ("documents", "sentences", "text_column"):
        if not FLAGS[flag].using_default_value:
            raise no_effect(flag, f"on corpus={FLAGS.corpus[0]}, which is prepared")


def make_objective():
    """Build the objective of the flags.

    Raises:
        InputError: if the objective refuses its arguments.
    """
    name, names = FLAGS.objective, OWN_FLAGS[FLAGS.objective]
    settings = {flag: FLAGS[flag].value for flag in names if FLAGS[flag].value is not None}
    settings.pop("generator_dir", None)
    if "masked_share" in settings:
        settings["share"] = settings.pop("masked_share")
    if "memory_length" in names:
        settings |= memory_arguments(name, settings.pop("memory_length", None))
    if name in ("next_sentence", "sentence_order"):
        hide = {"hide": "spans"} if name == "sentence_order" else {}
        settings = {"masked_lm": objectives.MaskedLM(**hide | settings)}
    return getattr(objectives, OBJECTIVES[name])(**settings)


def memory_arguments(name, length):
    """Return the memory arguments of an objective, for a memory of `length` tokens or None."""
    if name == "causal_lm":
        return {"memory": length is not None}
    if length and not FLAGS.reuse_length:
        return {"reuse_length": FLAGS.max_length // 2}
    return {}


def read_start(objective):
    """Return the objective, fitted to the model's memory, and the initial config and tokenizer.

    Raises:
        InputError: if the flags, the config or the tokenizer do not fit the objective.
    """
    config, tokenizer = model_flags.read_start(read_texts, writes=FLAGS.objective == "causal_lm")
    if config.recurrent and FLAGS.objective == "causal_lm":
        # The memory of a recurrent network is its state.
        if FLAGS.memory_length is not None:
            where = "on a recurrent network, which goes on from its state"
            raise no_effect("memory_length", where)
        objective = dataclasses.replace(objective, memory=True)
    elif objective.memory and config.has_memory:
        fields = {"memory_length": FLAGS.memory_length}
        if hasattr(objective, "reuse_length"):
            fields["reuse_length"] = objective.reuse_length
        known = {field.name for field in dataclasses.fields(config)}
        config = dataclasses.replace(config, **{k: fields[k] for k in fields.keys() & known})
    objective.check(config, tokenizer)
    return objective, config, tokenizer


def read_texts():
    """Read the texts of --corpus, to train a tokenizer on.

    Raises:
        InputError: if --corpus is a prepared corpus, or holds no text.
    """
    if pathlib.Path(FLAGS.corpus[0]).is_dir():
        raise InputError(
            f"corpus={FLAGS.corpus[0]} is a prepared corpus, of ids alone; give the "
            "`tokenizer_dir` that it was prepared with."
        )
    texts = list(
        corpora.read_documents(
            corpora.find_files(FLAGS.corpus), FLAGS.documents, FLAGS.text_column
        )
    )
    if not any(text.strip() for text in texts):
        raise InputError(f"corpus={','.join(FLAGS.corpus)} holds no text; give files with text.")
    return texts


def read_corpus(paths, tokenizer):
    """Open the corpus of --corpus or --dev."""
    return objectives.open_corpus(
        paths, tokenizer, FLAGS.documents, FLAGS.sentences, FLAGS.text_column
    )


def main():
    check_flags()
    config, run = training_flags.start_run()
    with training.make_strategy(FLAGS.strategy).scope():
        objective, model_config, tokenizer = read_start(make_objective())
        model_flags.keep_tokenizer(run, tokenizer)
        started = training.start_models(
            objective,
            model_config,
            FLAGS.model_dir,
            FLAGS.generator_dir,
            block_size=FLAGS.block_size,
        )
        pooler = None
        if FLAGS.model_dir and objective.head == "masked_lm":
            pooler = checkpoints.read_pooler(FLAGS.model_dir)
        for model in started.values():
            model_flags.check_fit(model, tokenizer)
        dev = read_corpus(FLAGS.dev, tokenizer) if FLAGS.dev else None
        corpus = read_corpus(FLAGS.corpus, tokenizer)
        reading = objectives.reading_settings(FLAGS.corpus, FLAGS.documents, FLAGS.max_length)
        training.Pretraining(
            objective,
            started,
            tokenizer,
            data=training.Splits(corpus, dev, FLAGS.max_length),
            config=config,
            run=run,
            on_nan=FLAGS.on_nan,
            steps_per_epoch=FLAGS.steps_per_epoch,
            task_settings=reading | {"texts": len(corpus)},
            pooler=pooler,
        ).run_all()
    logging.info("Fine-tune it: --model_dir=%s", run.best)


if __name__ == "__main__":
    entry_point.run(main)
