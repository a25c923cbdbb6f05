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

Pretrain an ELMo, two networks that read characters in both directions, for classifiers and taggers
on top of its states:

    python -m recipes.pretrain --objective=bidirectional_lm --family=elmo --hidden_dim=512 \\
        --corpus='news/*.txt' --epochs=10 --output_dir=runs/elmo

OUTPUT_DIR/best is a Hugging Face folder of the last epoch, for any fine-tuning; the generator of
an ELECTRA is in OUTPUT_DIR/generator. To continue with both on other text:

    python -m recipes.pretrain --objective=replaced_tokens --model_dir=runs/electra/best \\
        --generator_dir=runs/electra/generator --corpus=reviews.txt --output_dir=runs/domain

The same command resumes a stopped or killed run, which ends with the same weights.
"""

import dataclasses
import itertools
import math
import os

from absl import flags, logging

from recipes.flags import (
    data_flags,
    dataclass_flags,
    knowledge_flags,
    model_flags,
    objective_flags,
    training_flags,
)
from recipes.shell import entry_point
from recipes.shell.command_line import flag_text, group, no_effect, read_numbers, refuse_beside
from tfnlp import checkpoints, configs, objectives, training
from tfnlp.corpora.shards import read_manifest
from tfnlp.families import FAMILIES, family_of
from tfnlp.training.run.training_config import PretrainingConfig
from tfnlp.training.step.published_settings import PRETRAINING
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
objective_flags.define_flags()
with group("Corpus"):
    flags.DEFINE_list(
        "corpus",
        None,
        "Folders from prepare_corpus; or text files, or quoted patterns of files, that fit in "
        "memory: .tsv, .csv, .json, .jsonl or .parquet with a document in each row, or plain "
        "text; or with .gz.",
    )
    flags.DEFINE_list(
        "corpus_weights",
        None,
        "Share of the tokens of each folder or file of --corpus, such as 3,1; the scarce ones are "
        "repeated. If not given, each document is read once in a pass.",
    )
    flags.DEFINE_list(
        "dev", None, "Corpus, likewise, to evaluate on after each epoch; none if not given."
    )
    data_flags.define_further_dev_flag()
    data_flags.define_document_flags("blank_lines", "sentences")
    flags.mark_flag_as_required("corpus")
model_flags.define_model_flags()
knowledge_flags.define_entity_flags()
training_flags.define_training_flags(epochs=1, learning_rate=1e-4)
training_flags.define_recipe_flag(PRETRAINING)
with group("Training"):
    names = ("steps_per_epoch", "loader_processes", "on_nan")
    dataclass_flags.define(PretrainingConfig, *names)


def check_flags():
    """Return the objective's settings; raise an InputError for flags that do not fit."""
    training_flags.training_config(PretrainingConfig)
    if FLAGS.keep_best and not FLAGS.dev:
        raise no_effect("keep_best", "without `dev`", "give it, or keep_every")
    model_flags.check_start_flags()
    settings = objective_flags.read_settings()
    check_weights()
    if not FLAGS.model_dir:
        check_family()
        if FLAGS.objective == "denoising_entities" and not FLAGS.entity_vectors:
            raise InputError("objective=denoising_entities needs `entity_vectors` and `graph`.")
    if FLAGS.objective != "denoising_entities":
        refuse_beside(["entity_vectors"], f"objective={FLAGS.objective}")
    corpora = {"corpus": FLAGS.corpus, "dev": FLAGS.dev or []}
    corpora |= {f"further_dev={name}": x for name, x in data_flags.further_dev().items()}
    data_flags.warn_of_shared_corpora(corpora)
    if all(map(os.path.isdir, itertools.chain(*corpora.values()))):
        names = ("documents", "sentences", "text_column")
        refuse_beside(names, f"corpus={FLAGS.corpus[0]}, which is prepared")
    for flag, paths in corpora.items():
        check_corpus(flag, paths)
    return settings


def check_corpus(flag, paths):
    """Raise an InputError for folders without a corpus, or files whose beginning cannot be read.

    Of files the first text is read.
    """
    folders = [*filter(os.path.isdir, paths)]
    for folder in folders:
        read_manifest(folder)
    if folders and not (FLAGS.model_dir or FLAGS.tokenizer_dir):
        raise InputError(
            f"{flag}={folders[0]} is a prepared corpus, of ids alone; give the "
            "`tokenizer_dir` that it was prepared with."
        )
    if files := [path for path in paths if path not in folders]:
        data_flags.read_documents(files, 1)


def check_weights():
    """Return the numbers of --corpus_weights; raise an InputError if they do not fit --corpus."""
    weights = read_numbers("corpus_weights", float)
    positive = [weight for weight in weights or () if 0 < weight < math.inf]
    if weights and not len(positive) == len(weights) == len(FLAGS.corpus):
        raise InputError(
            f"corpus_weights={flag_text(FLAGS.corpus_weights)} must be {len(FLAGS.corpus)} "
            "positive numbers, one for each folder or file of `corpus`."
        )
    return weights


def check_family():
    """Raise an InputError if a model from scratch does not fit the objective and its settings."""
    config, family = model_flags.scratch_config(), FLAGS.family or FLAGS.size or "bert"
    if FLAGS.objective not in family_of(config).objectives:
        fitting = [f.names for f in FAMILIES.values() if FLAGS.objective in f.objectives]
        raise InputError(
            f"objective={FLAGS.objective} does not fit the family {family}; give family="
            f"{' or '.join(itertools.chain(*fitting))}."
        )
    if FLAGS.packing == "masked":
        configs.check_packing(config)
    check_memory_flag(config)


def check_memory_flag(config):
    """Raise an InputError for --memory_length with a model that has none, or its state alone."""
    if FLAGS.memory_length and (config.recurrent or not config.has_memory):
        why = "goes on from its state" if config.recurrent else "has no memory"
        raise no_effect("memory_length", f"on a {configs.family_name(config)} model, which {why}")


def read_start(objective, entities):
    """Return the objective, fitted to the model's memory, and the initial config and tokenizer.

    Args:
        objective: see `tfnlp.objectives`.
        entities: from `knowledge_flags.read_entities`.

    Raises:
        InputError: if the flags, the config or the tokenizer do not fit the objective.
    """
    config, tokenizer = model_flags.read_start(
        lambda: data_flags.read_documents(FLAGS.corpus), writes=FLAGS.objective == "causal_lm"
    )
    tokenizer = knowledge_flags.find_entities(tokenizer, entities)
    check_memory_flag(config)
    if config.recurrent and FLAGS.objective == "causal_lm":
        # The memory of a recurrent network is its state.
        objective = dataclasses.replace(objective, memory=True)
    elif objective.memory and config.has_memory:
        fields = {"memory_length": FLAGS.memory_length}
        if hasattr(config, "reuse_length") and hasattr(objective, "reuse_length"):
            fields["reuse_length"] = objective.reuse_length
        config = dataclasses.replace(config, **fields)
    objective.check(config, tokenizer)
    return objective, config, tokenizer


def read_corpus(paths, tokenizer, weights=None):
    """Open the corpus of --corpus or --dev, in the shares of `weights` if given."""
    reading = FLAGS.documents, FLAGS.sentences, FLAGS.text_column
    if weights is None:
        return objectives.open_corpus(paths, tokenizer, *reading)
    corpora = [objectives.open_corpus(path, tokenizer, *reading) for path in paths]
    return objectives.MixedCorpus(corpora, weights, FLAGS.seed)


def main():
    settings = check_flags()
    entities = knowledge_flags.read_entities()
    config, run = training_flags.start_run(PretrainingConfig)
    with training.make_strategy(FLAGS.strategy).scope():
        objective, model_config, tokenizer = read_start(settings.objective(), entities)
        model_flags.keep_tokenizer(run, tokenizer)
        started = training.start_models(
            objective,
            model_config,
            FLAGS.model_dir,
            FLAGS.generator_dir,
            block_size=FLAGS.block_size,
        )
        started = {
            name: knowledge_flags.add_entities(model, entities) for name, model in started.items()
        }
        pooler = None
        if FLAGS.model_dir and objective.head == "masked_lm":
            pooler = checkpoints.read_pooler(FLAGS.model_dir)
        for model in started.values():
            model_flags.check_fit(model, tokenizer)
        dev = read_corpus(FLAGS.dev, tokenizer) if FLAGS.dev else None
        further_dev = {
            name: read_corpus(paths, tokenizer) for name, paths in data_flags.further_dev().items()
        }
        corpus = read_corpus(FLAGS.corpus, tokenizer, check_weights())
        reading = objectives.reading_settings(FLAGS.corpus, FLAGS.documents, FLAGS.max_length)
        training.Pretraining(
            objective,
            started,
            tokenizer,
            data=training.Splits(corpus, dev, FLAGS.max_length, further_dev=further_dev),
            config=config,
            run=run,
            task_settings=reading | {"texts": len(corpus)},
            pooler=pooler,
        ).run_all()
    logging.info("Fine-tune it: --model_dir=%s", run.best)


if __name__ == "__main__":
    entry_point.run(main)
