"""Evaluates a causal language model by few-shot prompting: examples of a task in its prompt.

    python -m recipes.prompt --model_dir=gpt2 --train=sst2/train.tsv --input=sst2/dev.tsv \\
        --template='Review: {text}\\nSentiment: {label}' --label_words=0=negative,1=positive \\
        --shots=0,1,4 --draws=5 --output_dir=runs/prompted

chooses, for each text of --input, the label whose words are the most probable: by their summed
log-likelihood, by that over their tokens (length), and by that less what they have after the
answer's context alone (prior), as in GPT-3's paper. Examples are drawn from --train, but for those
whose text is in --input too, --draws times for each number of --shots; the table has the mean
accuracy over draws and its standard error.

    python -m recipes.prompt --model_dir=gpt2 --input=news.tsv --complete \\
        --template='{text}\\nTL;DR: {label}' --max_new_tokens=60 --output_dir=runs/summaries

lets the model write instead, up to --stop, and scores that against the column of labels by BLEU
and ROUGE. Results are kept in OUTPUT_DIR/prompted.json as they come, so that a killed run goes on;
what was written is in OUTPUT_DIR/written_SHOTS_DRAW.jsonl.
"""

import os

from absl import flags, logging

import tfnlp
from recipes import common
from recipes.command_line import group
from tfnlp import checkpoints, generation, tasks, training
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_writable

FLAGS = flags.FLAGS
common.define_model_flag()
flags.DEFINE_string("input", None, "File of texts with their labels: .tsv, .csv, .json, .jsonl.")
flags.DEFINE_string("train", None, "File of the examples to draw shots from, likewise.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_string("label_column", "label", "Column of the label, or of what is to be written.")
flags.DEFINE_string("output_dir", None, "Folder of the results; a killed run goes on from it.")
flags.DEFINE_integer("count", None, "Texts of --input that are read, the first ones; all.", 1)
flags.DEFINE_integer("batch_size", 8, "Prompts that are read at a time.", 1)
flags.DEFINE_string(
    "end_token", None, "Token that ends a text; what stands between documents if not given."
)
flags.mark_flags_as_required(["input", "output_dir"])


@group("Prompts")
def define_prompt_flags():
    flags.DEFINE_string(
        "template",
        None,
        "An example with the slots {text} and {label}; \\n in it is a line break.",
    )
    flags.DEFINE_string("separator", "\\n\\n", "What stands between examples.")
    flags.DEFINE_string("instruction", "", "What stands before the first, the task in words.")
    flags.DEFINE_list(
        "label_words", None, "What each label is written as, 0=bad,1=good; labels as they are."
    )
    flags.DEFINE_list("shots", ["0"], "Numbers of examples in a prompt, such as 0,1,4.")
    flags.DEFINE_integer("draws", 1, "Draws of the examples, for each number of them.", 1)
    flags.DEFINE_integer("seed", 0, "Seed of the draws.", 0)


@group("Writing")
def define_writing_flags():
    flags.DEFINE_bool("complete", False, "Write what comes after a prompt; else choose a label.")
    flags.DEFINE_integer("max_new_tokens", 32, "Most tokens that are written.", 1)
    flags.DEFINE_string("stop", "\\n", "Where what is written ends.")
    flags.DEFINE_integer("beams", 1, "Texts that are written side by side; 1 for greedy search.")


define_prompt_flags()
define_writing_flags()
flags.mark_flag_as_required("template")
# Flags that may change when a run resumes: they add results, but change none.
NOT_DECISIVE = ("shots", "draws", "batch_size")


def check_flags():
    """Raise an InputError for conflicting flags."""
    if not all(number.strip().isdecimal() for number in FLAGS.shots):
        raise InputError(f"shots={','.join(FLAGS.shots)} must be whole numbers, such as 0,1,4.")
    if FLAGS.train is None and any(int(number) for number in FLAGS.shots):
        raise InputError(
            f"shots={','.join(FLAGS.shots)} are drawn from labelled examples; give their file as "
            "`train`."
        )
    if FLAGS.complete and FLAGS.label_words:
        raise InputError("`label_words` are for choosing, not for complete=True; leave them out.")
    for name in ("max_new_tokens", "stop", "beams"):
        if FLAGS[name].present and not FLAGS.complete:
            raise InputError(f"{name}={FLAGS[name].value} has no effect without `complete`.")
    if FLAGS.complete:
        tasks.scoring_libraries()  # fail now, not after the generation


def main():

    pattern = (_unescaped(FLAGS[name].value) for name in ("template", "separator", "instruction"))
    template, shots = (
        generation.Template(*pattern),
        sorted({int(number) for number in FLAGS.shots}),
    )
    path = os.path.join(FLAGS.output_dir, "prompted.json")
    check_writable(path)
    columns = {"text_column": FLAGS.text_column, "label_column": FLAGS.label_column}
    examples, pool = tfnlp.text.read_examples(FLAGS.input, **columns), []
    words = (
        {} if FLAGS.complete else generation.label_words(examples.label_names, FLAGS.label_words)
    )
    texts, labels = (x[: FLAGS.count] for x in (examples.texts, _labels(examples, words)))
    if FLAGS.train:
        names = None if FLAGS.complete else examples.label_names
        drawn_from = tfnlp.text.read_examples(FLAGS.train, **columns, label_names=names)
        given = list(zip(drawn_from.texts, _labels(drawn_from, words), strict=True))
        pool = generation.without_texts(given, texts)
        if len(pool) < len(given):
            logging.info(
                "%d examples of --train are among the texts of --input; they are not drawn.",
                len(given) - len(pool),
            )
    settings = {k: v for k, v in common.decisive_flags().items() if k not in NOT_DECISIVE}
    settings["examples"] = training.content_fingerprint([texts, labels, pool])
    for number in shots:  # report too many shots before loading the model
        generation.draw_shots(len(pool), number, FLAGS.seed, 0)
    tokenizer = tfnlp.text.load_tokenizer(FLAGS.model_dir)
    model = checkpoints.load_model(FLAGS.model_dir, checkpoints.read_head(FLAGS.model_dir))
    settings["model"] = training.model_fingerprint(model)  # the folder's content may have changed
    run = generation.PromptedRun(path, settings, template, texts, labels, pool, FLAGS.seed)
    if FLAGS.complete:
        search = generation.Greedy() if FLAGS.beams == 1 else generation.Beam(FLAGS.beams)
        how = {"max_new_tokens": FLAGS.max_new_tokens, "batch_size": FLAGS.batch_size}
        generator = generation.Generator(
            model, tokenizer, search, **how, end_token=FLAGS.end_token
        )
        run.complete(generator, shots, FLAGS.draws, _unescaped(FLAGS.stop))
    else:
        scorer = generation.LikelihoodScorer(model, tokenizer, FLAGS.batch_size, FLAGS.end_token)
        run.choose(scorer, list(words.values()), shots, FLAGS.draws)
    print(run.table())


def _labels(examples, words):
    """Return each example's label as written in prompts."""
    names = (examples.label_names[label] for label in examples.labels)
    return [words.get(name, name) for name in names]


def _unescaped(text):
    """Replace \\n and \\t of a shell argument by line breaks and tabs."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


if __name__ == "__main__":
    common.run(main, check=check_flags)
