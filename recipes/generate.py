"""Continues texts by a causal language model: greedily, by beam search, or by draws.

    python -m recipes.generate --model_dir=gpt2 --text="The film begins" --max_new_tokens=40
    python -m recipes.generate --model_dir=gpt2 --text="The film begins" --search=beam --beams=4 \\
        --no_repeat_ngram_size=3
    python -m recipes.generate --model_dir=runs/lm/best --input=prompts.txt --search=sample \\
        --temperature=0.8 --top_p=0.9 --continuations=3 --output=runs/written.jsonl

The model is a GPT, a GPT-2, a Transformer-XL, an XLNet or a recurrent network with its language
model's head. Each prompt is printed with what comes after it, or written to --output: a .tsv with
the columns prompt, text, ended and score, or a .jsonl with token ids too. `ended` is whether the
model ended the text. The score is beam search's. The same --seed gives the same texts. The first
batch of a length takes some seconds longer, as the search is compiled.
"""

from absl import flags, logging

from recipes import common
from recipes.command_line import group, no_effect

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of a model, or its name on Hugging Face's Hub.")
flags.DEFINE_multi_string("text", [], "A prompt.")
flags.DEFINE_string("input", None, "File of prompts: .tsv, .csv, .json, .jsonl, .txt, or .gz.")
flags.DEFINE_string("text_column", "sentence", "Column of the prompt.")
flags.DEFINE_string("output", None, "File to write, .tsv or .jsonl; printed if not given.")
flags.DEFINE_integer("max_new_tokens", 64, "Most tokens of a text, its end counted.", 1)
flags.DEFINE_integer("batch_size", 16, "Prompts in a batch.", 1)
flags.DEFINE_string(
    "end_token", None, "Token that ends a text; what stands between documents if not given."
)
flags.mark_flag_as_required("model_dir")


@group("Search")
def define_search_flags():
    """Flags of how tokens are chosen."""
    flags.DEFINE_enum(
        "search",
        "greedy",
        ["greedy", "beam", "sample"],
        "How tokens are chosen: the most "
        "probable one, the best of several texts side by side, or drawn.",
    )
    flags.DEFINE_integer(
        "continuations", 1, "Continuations of each prompt, of --search=beam or sample.", 1
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
    """Flags of what a text must or may not have."""
    flags.DEFINE_float("repetition_penalty", 1.0, "By which scores of repeated tokens fall.")
    flags.DEFINE_integer("no_repeat_ngram_size", 0, "Tokens that may not repeat in a row; 0: any.")
    flags.DEFINE_multi_string("forbid", [], "A word, or words, that may not be written.")
    flags.DEFINE_integer("min_new_tokens", 0, "Tokens before a text may end.")
    flags.DEFINE_string("forced_first", None, "Token that each text begins with.")
    flags.DEFINE_string("forced_last", None, "Token that stands at --max_new_tokens.")


define_search_flags()
define_constraint_flags()
# The searches that flags are for.
OF_SEARCH = {
    "continuations": ("beam", "sample"),
    **dict.fromkeys(("beams", "length_penalty", "normalization", "early_stopping"), ("beam",)),
    **dict.fromkeys(("temperature", "top_k", "top_p", "seed"), ("sample",)),
}


def search_of_flags():
    """The `Greedy`, `Beam` or `Sample` that the flags ask for."""
    from tfnlp.errors import InputError
    from tfnlp.generation import Beam, Greedy, Sample

    for name, searches in OF_SEARCH.items():
        if FLAGS[name].present and FLAGS.search not in searches:
            way = f"leave it out, or give search={' or '.join(searches)}"
            raise no_effect(name, f"with search={FLAGS.search}", way)
    if FLAGS.search == "greedy":
        return Greedy()
    if FLAGS.search == "sample":
        return Sample(FLAGS.temperature, FLAGS.top_k, FLAGS.top_p, FLAGS.seed, FLAGS.continuations)
    early = {"false": False, "true": True, "never": "never"}[FLAGS.early_stopping]
    if FLAGS.continuations > max(FLAGS.beams, 1):
        raise InputError(
            f"continuations={FLAGS.continuations} is more than beams={FLAGS.beams}, the texts "
            "that there are."
        )
    return Beam(FLAGS.beams, FLAGS.length_penalty, FLAGS.normalization, early, FLAGS.continuations)


def constraints_of_flags(tokenizer):
    """The `Constraints` that the flags ask for."""
    from tfnlp.errors import InputError
    from tfnlp.generation import Constraints, forbidden_ids

    forced = {}
    for name in ("forced_first", "forced_last"):
        token = FLAGS[name].value
        forced[name] = None if token is None else tokenizer.token_id(token)
        if token is not None and forced[name] is None:
            raise InputError(f"{name}={token!r} is none of the tokenizer's tokens.")
    return Constraints(
        FLAGS.repetition_penalty,
        FLAGS.no_repeat_ngram_size,
        forbidden_ids(tokenizer, FLAGS.forbid),
        FLAGS.min_new_tokens,
        **forced,
    )


def warn_of_empty_prompts(prompts, texts):
    """Say where a prompt is empty and the model learned of `texts` texts, but no beginning."""
    if texts == 1 and "" in prompts:
        logging.warning(
            "An empty prompt asks for a beginning, but the model learned one whole text and no "
            "beginning: what it writes may be anything. Give a prompt."
        )


def main():
    from tfnlp.checkpoints import load_model, read_head, read_task_settings
    from tfnlp.errors import InputError
    from tfnlp.files import check_writable
    from tfnlp.generation import Generator
    from tfnlp.generation.written import print_generated, write_generated
    from tfnlp.text import load_tokenizer, read_examples

    if bool(FLAGS.text) == bool(FLAGS.input):
        raise InputError("Give either --text or --input.")
    if FLAGS.output:
        if not FLAGS.output.endswith((".tsv", ".jsonl")):
            raise InputError(f"output={FLAGS.output} must end in .tsv or .jsonl.")
        check_writable(FLAGS.output)
    search = search_of_flags()
    tokenizer = load_tokenizer(FLAGS.model_dir)
    constraints = constraints_of_flags(tokenizer)
    prompts = FLAGS.text
    if FLAGS.input:
        prompts = read_examples(FLAGS.input, FLAGS.text_column, label_column=None).texts
    warn_of_empty_prompts(prompts, read_task_settings(FLAGS.model_dir).get("texts"))
    # A head that is not there would start from fresh weights.
    model = load_model(FLAGS.model_dir, read_head(FLAGS.model_dir))
    generator = Generator(
        model,
        tokenizer,
        search,
        constraints,
        FLAGS.max_new_tokens,
        FLAGS.batch_size,
        FLAGS.end_token,
    )
    found = generator(prompts)
    if FLAGS.output:
        write_generated(FLAGS.output, prompts, found)
    else:
        print_generated(prompts, found)


if __name__ == "__main__":
    common.run(main)
