"""Generates text with a causal language model: greedily, by beam search, or by sampling.

    python -m recipes.generate --model_dir=gpt2 --text="The film begins" --max_new_tokens=40
    python -m recipes.generate --model_dir=gpt2 --text="The film begins" --search=beam --beams=4 \\
        --no_repeat_ngram_size=3
    python -m recipes.generate --model_dir=runs/lm/best --input=prompts.txt --search=sample \\
        --temperature=0.8 --top_p=0.9 --continuations=3 --stop='\\n' --output=runs/written.jsonl

The model is a GPT, a GPT-2, a Transformer-XL, an XLNet or a recurrent network with a language
model's head. It prints each prompt with its continuation, or writes them to --output: a .tsv with
the columns prompt, text, ended and score, or a .jsonl with token ids too. `ended` is whether the
text ended before the most tokens; the score is that of beam search. The same --seed gives the same
texts. The first batch of a length takes some seconds longer, because the search is compiled.

--model_dir may be a .tflite file of export_tflite instead, which writes the same texts without
TensorFlow. It ends texts where its export says, writes no more than its caches hold, and has the
beams that it was exported with.
"""

from absl import flags, logging

from distill import runtime
from recipes.flags import dataclass_flags, generation_flags, model_flags
from recipes.shell import entry_point
from recipes.shell.command_line import check_output, refuse_beside, require_one, unescaped
from recipes.shell.input_checks import names_file
from tfnlp import checkpoints, generation, text
from tfnlp.generation.generation_settings import Writing

FLAGS = flags.FLAGS
model_flags.define_model_flag(generation_flags.OR_FILE)
flags.DEFINE_multi_string("text", [], "A prompt.")
flags.DEFINE_string(
    "input", None, "File of prompts: .tsv, .csv, .json, .jsonl, .parquet or .txt, or with .gz."
)
flags.DEFINE_string("text_column", "sentence", "Column of the prompt.")
flags.DEFINE_string("output", None, "File to write, .tsv or .jsonl; printed if not given.")
dataclass_flags.define(Writing, "max_new_tokens", "batch_size")
generation_flags.define_end_token_flag()
flags.DEFINE_multi_string(
    "stop", [], "String that ends a text, which is cut before it; \\n is a line break."
)
flags.DEFINE_integer(
    "continuations", 1, "Continuations of each prompt, with --search=beam or sample.", 1
)
generation_flags.define_search_flags("greedy")
generation_flags.define_constraint_flags()


def check_flags():
    """Raise an InputError for conflicting flags."""
    require_one("input", "text")
    if FLAGS.output:
        check_output("output", ".tsv", ".jsonl")
    generation_flags.search_of_flags("continuations")


def warn_of_empty_prompts(prompts, texts):
    """Warn of empty prompts if the model was trained on a single text, so learned no beginning."""
    if texts == 1 and "" in prompts:
        logging.warning(
            "An empty prompt asks for a beginning, but the model learned one whole text and no "
            "beginning: what it writes may be anything. Give a prompt."
        )


def generator_of_file(search, stop_strings):
    """Return the `TextGenerator` of a .tflite file."""
    file = f"model_dir={FLAGS.model_dir}, which"
    refuse_beside(["batch_size"], f"{file} reads a prompt at a time")
    refuse_beside(["end_token"], f"{file} has its own")
    files = runtime.read_files(FLAGS.model_dir)
    tokenizer, _ = runtime.read_tokenizers(FLAGS.model_dir, *files)
    most = FLAGS["max_new_tokens"]
    return runtime.TextGenerator(
        FLAGS.model_dir,
        search,
        None if most.using_default_value else most.value,
        constraints=generation_flags.constraints_of_flags(tokenizer),
        stop_strings=stop_strings,
    )


def generator_of_folder(search, stop_strings, prompts):
    """Return the `Generator` of a model's folder."""
    tokenizer = text.load_tokenizer(FLAGS.model_dir)
    entry_point.load_tensorflow()
    constraints = generation_flags.constraints_of_flags(tokenizer)
    warn_of_empty_prompts(prompts, checkpoints.read_task_settings(FLAGS.model_dir).get("texts"))
    # Load the stored head: another one would start from random weights.
    model = checkpoints.load_model(FLAGS.model_dir, checkpoints.read_head(FLAGS.model_dir))
    writing = dataclass_flags.read(Writing, stop_strings=stop_strings)
    return generation.Generator(model, tokenizer, search, constraints, **vars(writing))


def main():
    check_flags()
    prompts = FLAGS.text
    if FLAGS.input:
        prompts = text.read_examples(FLAGS.input, FLAGS.text_column, label_column=None).texts
    search = generation_flags.search_of_flags("continuations")
    stop_strings = tuple(map(unescaped, FLAGS.stop))
    if names_file("model_dir"):
        generator = generator_of_file(search, stop_strings)
    else:
        generator = generator_of_folder(search, stop_strings, prompts)
    texts = generator(prompts)
    if FLAGS.output:
        generation.write_generated(FLAGS.output, prompts, texts)
    else:
        generation.print_generated(prompts, texts)


if __name__ == "__main__":
    entry_point.run(main)
