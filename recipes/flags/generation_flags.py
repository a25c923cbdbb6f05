"""Decoding flags shared by the recipes that generate text."""

from absl import flags

from recipes.flags import dataclass_flags
from recipes.shell.command_line import group, no_effect
from tfnlp import generation
from tfnlp.generation.generation_settings import Beam, Constraints, Greedy, Sample, Writing
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import metadata_of

FLAGS = flags.FLAGS
OR_FILE = ", or its .tflite file by export_tflite"  # of --model_dir

SEARCHES = {"greedy": Greedy, "beam": Beam, "sample": Sample}
EARLY_STOPPING = {"false": False, "true": True, "never": "never"}


@group("Search")
def define_search_flags(search):
    """Define the flags of decoding, with `search` as the default of --search."""
    flags.DEFINE_enum(
        "search",
        search,
        list(SEARCHES),
        "Choice of tokens: the most probable one, the best of several texts in parallel, or "
        "sampled.",
    )
    dataclass_flags.define(Beam, "beams", "length_penalty", "normalization")
    flags.DEFINE_enum(
        "early_stopping",
        "false",
        list(EARLY_STOPPING),
        "End of a beam search: once the best open text, ended now, would not be kept; once "
        "--beams texts have ended; or once no open text could be kept at any length.",
    )
    dataclass_flags.define(Sample, "temperature", "top_k", "top_p", "min_p", "seed")


@group("Constraints")
def define_constraint_flags():
    """Define the flags of required and forbidden tokens."""
    names = "repetition_penalty", "no_repeat_ngram_size", "min_new_tokens"
    dataclass_flags.define(Constraints, *names)
    flags.DEFINE_multi_string("forbid", [], "A word or phrase that may not be generated.")
    flags.DEFINE_string("forced_first", None, "First token of each text.")
    flags.DEFINE_string("forced_last", None, "Last token of texts that reach --max_new_tokens.")


def define_end_token_flag():
    """Define --end_token, which may be given several times."""
    flags.DEFINE_multi_string("end_token", None, metadata_of(Writing, "end_token")["help"])


def search_of_flags(count):
    """Return the `Greedy`, `Beam` or `Sample` of the flags.

    Args:
        count: name of the flag with the number of generated texts for each input.

    Raises:
        InputError: if a flag belongs to another search, or a setting is out of range.
    """
    search, texts = FLAGS.search, FLAGS[count].value
    dataclass_flags.refuse_others(SEARCHES[search], SEARCHES.values(), f"with search={search}")
    if search == "sample":
        return dataclass_flags.read(Sample, texts=texts)
    if search == "beam":
        if texts > max(FLAGS.beams, 1):
            raise InputError(
                f"{count}={texts} is more than beams={FLAGS.beams}, the texts that there are."
            )
        early = EARLY_STOPPING[FLAGS.early_stopping]
        return dataclass_flags.read(Beam, early_stopping=early, best=texts)
    if texts > 1:
        raise no_effect(count, "with search=greedy", "give search=beam or search=sample")
    return Greedy()


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
    forbidden = generation.forbidden_ids(tokenizer, FLAGS.forbid)
    return dataclass_flags.read(Constraints, forbidden=forbidden, **forced)
