"""Evaluates a causal language model by few-shot prompting: examples of a task in its prompt.

    python -m recipes.prompt --model_dir=gpt2 --train=sst2/train.tsv --input=sst2/dev.tsv \\
        --template='Review: {text}\\nSentiment: {label}' --label_words=0=negative,1=positive \\
        --shots=0,1,4 --draws=5 --output_dir=runs/prompted

chooses the most probable label for each text of --input: by the summed log-likelihood of its
words, by the mean over their tokens (length), and by the sum less that after the answer's context
alone (prior), as in the paper of GPT-3. Examples are drawn from --train, without texts of --input,
--draws times for each number of --shots; the table has the mean accuracy over draws and its
standard error.

    python -m recipes.prompt --model_dir=gpt2 --input=news.tsv --complete \\
        --template='{text}\\nTL;DR: {label}' --max_new_tokens=60 --output_dir=runs/summaries

generates text up to --stop instead, and scores it against the column of labels by BLEU and ROUGE.
The same command resumes a killed run from OUTPUT_DIR/prompted.json; the generated texts are in
OUTPUT_DIR/written_SHOTS_DRAW.jsonl.
"""

import os

from absl import flags, logging

import tfnlp
from recipes.flags import dataclass_flags, model_flags, training_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group, refuse_beside, refuse_without, unescaped
from tfnlp import checkpoints, generation, tasks, training
from tfnlp.generation.generation_settings import Beam, Greedy, Shots, Writing

FLAGS = flags.FLAGS
model_flags.define_model_flag()
flags.DEFINE_string(
    "input",
    None,
    "File of texts with their labels: .tsv, .csv, .json, .jsonl or .parquet, or with .gz.",
)
flags.DEFINE_string("train", None, "File of the examples to draw shots from, likewise.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_string("label_column", "label", "Column of the label, or of the reference text.")
flags.DEFINE_string(
    "output_dir", None, "Folder of the results; the same command resumes a killed run."
)
flags.DEFINE_integer(
    "count", None, "Number of first texts of --input to read; all if not given.", 1
)
dataclass_flags.define(Writing, "end_token", batch_size=8)
flags.mark_flags_as_required(["input", "output_dir"])
with group("Prompts"):
    flags.DEFINE_string(
        "template", None, "Pattern of an example, with {text} and {label}; \\n is a line break."
    )
    flags.DEFINE_string("separator", "\\n\\n", "Separator of examples.")
    flags.DEFINE_string(
        "instruction", "", "Text before the examples, such as a description of the task."
    )
    flags.DEFINE_list(
        "label_words", None, "Words of the labels, such as 0=bad,1=good; the labels if not given."
    )
    dataclass_flags.define(Shots)
with group("Generation"):
    flags.DEFINE_bool(
        "complete", False, "Generate the text after a prompt, instead of choosing a label."
    )
    dataclass_flags.define(Writing, max_new_tokens=32)
    flags.DEFINE_string("stop", "\\n", "Text at which generation stops.")
    dataclass_flags.define(Beam, beams=1)
flags.mark_flag_as_required("template")
# Flags that may change when a run resumes: they add results, but change none.
NOT_DECISIVE = ("shots", "draws", "batch_size")


def check_flags():
    """Raise an InputError for conflicting flags."""
    if any(dataclass_flags.read(Shots).shots):
        refuse_without(["shots"], "train")
    if FLAGS.complete:
        refuse_beside(["label_words"], "complete=true, which chooses no label")
        tasks.scoring_libraries()  # fail now, not after the generation


def main():
    check_flags()
    pattern = (unescaped(FLAGS[name].value) for name in ("template", "separator", "instruction"))
    template, shots = generation.Template(*pattern), dataclass_flags.read(Shots)
    path = os.path.join(FLAGS.output_dir, "prompted.json")
    columns = {"text_column": FLAGS.text_column, "label_column": FLAGS.label_column}
    examples, pool = tfnlp.text.read_examples(FLAGS.input, **columns), []
    words = {}
    if not FLAGS.complete:
        words = generation.label_words(examples.label_names, FLAGS.label_words)
    texts, labels = (x[: FLAGS.count] for x in (examples.texts, _labels(examples, words)))
    if FLAGS.train:
        names = None if FLAGS.complete else examples.label_names
        drawn_from = tfnlp.text.read_examples(FLAGS.train, **columns, label_names=names)
        examples_of_train = list(zip(drawn_from.texts, _labels(drawn_from, words), strict=True))
        pool = generation.without_texts(examples_of_train, texts)
        if len(pool) < len(examples_of_train):
            logging.info(
                "%d examples of --train are among the texts of --input; they are not drawn.",
                len(examples_of_train) - len(pool),
            )
    settings = {k: v for k, v in training_flags.decisive_flags().items() if k not in NOT_DECISIVE}
    settings["examples"] = training.content_fingerprint([texts, labels, pool])
    for number in shots.shots:  # report too many shots before loading the model
        generation.draw_shots(len(pool), number, shots.seed, 0)
    tokenizer = tfnlp.text.load_tokenizer(FLAGS.model_dir)
    entry_point.load_tensorflow()
    model = checkpoints.load_model(FLAGS.model_dir, checkpoints.read_head(FLAGS.model_dir))
    settings["model"] = training.model_fingerprint(model)  # the folder's content may have changed
    data = {"pool": pool, "shots": shots}
    run = generation.PromptedRun(path, settings, template, texts, labels, **data)
    writing = dataclass_flags.read(Writing)
    if FLAGS.complete:
        search = dataclass_flags.read(Beam if FLAGS.beams > 1 else Greedy)
        generator = generation.Generator(model, tokenizer, search, **vars(writing))
        run.complete(generator, unescaped(FLAGS.stop))
    else:
        sizes = writing.batch_size, writing.end_token
        scorer = generation.LikelihoodScorer(model, tokenizer, *sizes)
        run.choose(scorer, list(words.values()))
    print(run.table())


def _labels(examples, words):
    """Return each example's label as written in prompts."""
    names = (examples.label_names[label] for label in examples.labels)
    return [words.get(name, name) for name in names]


if __name__ == "__main__":
    entry_point.run(main)
