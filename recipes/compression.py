"""Flags of recipes that train: what a student is made smaller by."""

from absl import flags, logging

from recipes.command_line import group

FLAGS = flags.FLAGS


@group("Compression")
def define_distillation_flags():
    """Flags of what a student has less of than its teacher, beside layers and width."""
    flags.DEFINE_integer(
        "keep_tokens",
        None,
        "The most tokens of the vocabulary to keep, by frequency in --train; all if not given. "
        "The teacher is pruned to them too, so that its tokens are the student's.",
        1,
    )


def with_fewer_tokens(teacher, tokenizer, train):
    """A teacher and its tokenizer, pruned to the --keep_tokens most frequent tokens of `train`."""
    if FLAGS.keep_tokens is None:
        return teacher, tokenizer
    from distill.compression.vocabulary import compare_tokenizers, prune_vocabulary, texts_of

    texts = texts_of(train)
    pruned = prune_vocabulary(teacher, tokenizer, texts, FLAGS.keep_tokens)
    figures = compare_tokenizers(tokenizer, pruned[1], texts)
    logging.info(
        "Of %d tokens %d are kept; %.2f %% of the texts are other tokens than before.",
        *figures["tokens"],
        100 * figures["changed_share"][0],
    )
    return pruned
