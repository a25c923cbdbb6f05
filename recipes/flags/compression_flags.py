"""Compression flags of the training recipes: pruning, clustering and quantisation."""

import contextlib

from absl import flags, logging

import tfnlp
from distill import compression
from recipes.flags import dataclass_flags
from recipes.shell.command_line import group, refuse_beside, refuse_without
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS


@group("Compression")
def define_distillation_flags():
    """Define flags that prune the teacher's vocabulary, heads and units for the student."""
    flags.DEFINE_integer(
        "keep_tokens",
        None,
        "Tokens of the vocabulary to keep, the most frequent in --train; all if not given. The "
        "student learns from a teacher pruned to them; `share_of_teacher` compares it with the "
        "unpruned teacher.",
        1,
    )
    flags.DEFINE_integer(
        "keep_heads",
        None,
        "Attention heads to keep in each layer, the most important to the teacher's loss (or "
        "vectors) on 1,000 examples of --train; all if not given.",
        1,
    )
    flags.DEFINE_integer(
        "keep_units", None, "Feed-forward units to keep in each layer, chosen likewise.", 1
    )


@group("Compression")
def define_training_flags():
    """Define flags of sparsity, weight clustering and quantisation-aware training."""
    names = "sparsity", "pattern", "begin_step", "end_step"
    dataclass_flags.define(compression.PruningConfig, **dict.fromkeys(names))
    dataclass_flags.define(compression.ClusteringConfig, clusters=None)
    flags.DEFINE_bool(
        "quantization_aware",
        False,
        "Round the inputs and outputs of products to 8 bits in training, as a static_int8 file "
        "does.",
    )


@contextlib.contextmanager
def rounding(model):
    """Make a model compute with rounding or in float, as --quantization_aware says.

    Without the flag, the model computes in float only while the context is active. With it,
    rounding is inserted and stays.

    Raises:
        InputError: if --quantization_aware does not apply to the model.
    """
    if not FLAGS.quantization_aware:
        with tfnlp.quantization.fake_quantization.in_float(model):
            yield
        return
    if not tfnlp.quantization.fake_quantization.has_products(model):
        raise InputError(
            f"--quantization_aware has no effect on a {model.name} model, whose products are not "
            "rounded; leave it out."
        )
    try:
        tfnlp.layers.fake_quantize(model)
    except ValueError as e:
        raise InputError(f"--quantization_aware: {e}") from None
    yield


def check_training_flags():
    """Raise an InputError for conflicting flags of sparsity and clustering."""
    if FLAGS.sparsity is not None:
        refuse_beside(["clusters"], f"sparsity={FLAGS.sparsity}")
    names = ("sparsity_pattern", "sparsity_begin_step", "sparsity_end_step")
    refuse_without(names, "sparsity")


def compressor():
    """Return a function of (model, steps) that makes a pruner or clusterer, or None."""
    if FLAGS.clusters is not None:
        return dataclass_flags.read(compression.ClusteringConfig).clusterer
    if FLAGS.sparsity is None:
        return None
    return dataclass_flags.read(compression.PruningConfig).pruner


def with_fewer_parts(teacher, task, tokenizer, train):
    """Return the teacher pruned to its --keep_heads and --keep_units most important parts."""
    if FLAGS.keep_heads is None and FLAGS.keep_units is None:
        return teacher
    data = (tokenizer, train, FLAGS.max_length)
    importance = compression.measure_importance(teacher, task, *data, seed=FLAGS.seed)
    return compression.prune_structure(teacher, importance, FLAGS.keep_heads, FLAGS.keep_units)


def with_fewer_tokens(models, tokenizer, train, dev):
    """Return models and tokenizer pruned to the --keep_tokens most frequent tokens of `train`.

    `dev` is examples whose texts are read to tell how well the tokens serve others.
    """
    if FLAGS.keep_tokens is None:
        return models, tokenizer
    texts = [compression.task_texts(examples) for examples in (train, dev)]
    pruned, smaller = compression.prune_vocabularies(
        models, tokenizer, texts[0], FLAGS.keep_tokens
    )
    figures = [compression.compare_tokenizers(tokenizer, smaller, x) for x in texts]
    learned, others = (100 * x["texts_with_other_tokens"][0] for x in figures)
    logging.info(
        "Of %d tokens %d are kept; %.2f %% of the texts of --train are other tokens than before, "
        "and %.2f %% of those of --dev.",
        *figures[0]["tokens"],
        learned,
        others,
    )
    if others > learned + 10:
        logging.warning(
            "Words that --train does not have are read by shorter tokens, which costs accuracy; "
            "more texts in --train, or no --keep_tokens, keep them."
        )
    return pruned, smaller
