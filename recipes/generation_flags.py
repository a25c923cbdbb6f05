"""Decoding flags shared by the recipes that generate text."""

from absl import flags

from recipes.command_line import group, no_effect
from tfnlp import generation
from tfnlp.utils.errors import InputError
from tfnlp.utils.generation_settings import Beam, Greedy, Sample

FLAGS = flags.FLAGS


@group("Search")
def define_search_flags(search):
    """Define the flags of decoding, with `search` as the default of --search."""
    flags.DEFINE_enum(
        "search",
        search,
        ["greedy", "beam", "sample"],
        "How tokens are chosen: the most probable one, the best of several texts side by side, or "
        "drawn.",
    )
    flags.DEFINE_integer("beams", 4, "Texts side by side, of --search=beam.")
    flags.DEFINE_float("length_penalty", 1.0, "Exponent of a beam's norm of length; 0 for none.")
    flags.DEFINE_enum(
        "normalization", "length", ["length", "gnmt"], "The norm: t, or (5 + t) / 6 of Wu et al."
    )
    flags.DEFINE_enum(
        "early_stopping",
        "false",
        ["false", "true", "never"],
        "When a beam search ends: once the "
        "best open text could not be kept as it is, once --beams texts have ended, or once no "
        "open text could be kept at any length.",
    )
    flags.DEFINE_float("temperature", 1.0, "By which logits are divided, of --search=sample.")
    flags.DEFINE_integer("top_k", 0, "Most probable tokens to draw from; 0 for all.")
    flags.DEFINE_float("top_p", 1.0, "Share of the most probable tokens to draw from.")
    flags.DEFINE_integer("seed", 0, "Seed of the draws.")


@group("Constraints")
def define_constraint_flags():
    """Define the flags of required and forbidden tokens."""
    flags.DEFINE_float("repetition_penalty", 1.0, "By which scores of repeated tokens fall.")
    flags.DEFINE_integer("no_repeat_ngram_size", 0, "Tokens that may not repeat in a row; 0: any.")
    flags.DEFINE_multi_string("forbid", [], "A word, or words, that may not be written.")
    flags.DEFINE_integer("min_new_tokens", 0, "Tokens before a text may end.")
    flags.DEFINE_string("forced_first", None, "Token that each text begins with.")
    flags.DEFINE_string("forced_last", None, "Token that stands at --max_new_tokens.")


# The searches that each flag applies to.
OF_SEARCH = {
    **dict.fromkeys(("beams", "length_penalty", "normalization", "early_stopping"), ("beam",)),
    **dict.fromkeys(("temperature", "top_k", "top_p", "seed"), ("sample",)),
}


def search_of_flags(count):
    """Return the `Greedy`, `Beam` or `Sample` of the flags.

    Args:
        count: name of the flag with the number of generated texts for each input.

    Raises:
        InputError: if a flag belongs to another search, or a setting is out of range.
    """

    for name, searches in {count: ("beam", "sample"), **OF_SEARCH}.items():
        if FLAGS[name].present and FLAGS.search not in searches:
            way = f"leave it out, or give search={' or '.join(searches)}"
            raise no_effect(name, f"with search={FLAGS.search}", way)
    texts = FLAGS[count].value
    if FLAGS.search == "greedy":
        return Greedy()
    if FLAGS.search == "sample":
        return Sample(FLAGS.temperature, FLAGS.top_k, FLAGS.top_p, FLAGS.seed, texts)
    early = {"false": False, "true": True, "never": "never"}[FLAGS.early_stopping]
    if texts > max(FLAGS.beams, 1):
        raise InputError(
            f"{count}={texts} is more than beams={FLAGS.beams}, the texts that there are."
        )
    return Beam(FLAGS.beams, FLAGS.length_penalty, FLAGS.normalization, early, texts)


def constraints_of_flags(tokenizer, forced_last=None):
    """Return the `Constraints` of the flags.

    Args:
        tokenizer: the tokenizer of the generated texts.
        forced_last: the last token id at the greatest length, if --forced_last is not given.

    Raises:
        InputError: if --forced_first or --forced_last is not a token.
    """

    forced = {"forced_first": None, "forced_last": forced_last}
    for name in forced:
        token = FLAGS[name].value
        if token is not None:
            forced[name] = tokenizer.token_id(token)
            if forced[name] is None:
                raise InputError(f"{name}={token!r} is none of the tokenizer's tokens.")
    return generation.Constraints(
        FLAGS.repetition_penalty,
        FLAGS.no_repeat_ngram_size,
        generation.forbidden_ids(tokenizer, FLAGS.forbid),
        FLAGS.min_new_tokens,
        **forced,
    )
