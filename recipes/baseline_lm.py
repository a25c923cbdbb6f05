"""Counts n-grams as a language model: perplexity, next words, spelling, to compare with.

    python -m recipes.baseline_lm --train=train.txt --test=test.txt --order=4
    python -m recipes.baseline_lm --train=reviews.txt --text="the film is" \\
        --correct="a very beatiful flim"
    python -m recipes.baseline_lm --train=nsmc/unlabelled.txt.gz --unit=characters --order=6 \\
        --text="정말 재미있는 영"

The counts are smoothed by Kneser and Ney's method. It takes seconds, and nothing is kept but the
figures in OUTPUT_DIR/evaluation.json, which are those of evaluate_lm. Perplexities are comparable
with the pieces of one tokenizer (--tokenizer_dir), bits per character with --unit=spaces or
characters too, unless many tokens are unknown (`unknown_share`).
"""

from absl import flags

from recipes.flags import data_flags, dataclass_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group, refuse_beside, refuse_without
from tfnlp import baselines, text
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json

FLAGS = flags.FLAGS
with group("Texts"):
    flags.DEFINE_list(
        "train", None, "Texts to count: .tsv, .csv, .json, .jsonl, .parquet or plain; or with .gz."
    )
    flags.DEFINE_list("test", None, "Files, likewise, to measure the model on.")
    data_flags.define_document_flags("lines")
    flags.mark_flag_as_required("train")
flags.DEFINE_multi_string("text", [], "Beginning of a text, to print the most probable next.")
flags.DEFINE_multi_string("correct", [], "Text whose spelling is corrected, in whole words.")
with group("Model"):
    flags.DEFINE_enum(
        "unit",
        "words",
        list(baselines.SPLITTERS),
        "Tokens: words in lower case, what stands between spaces, Korean morphemes, characters.",
    )
    flags.DEFINE_string("tokenizer_dir", None, "Folder of a tokenizer, in place of --unit.")
    dataclass_flags.define(baselines.NgramSettings)
    dataclass_flags.define(baselines.SpellingSettings)
flags.DEFINE_string("output_dir", None, "Folder to write evaluation.json into, of --test.")


def check_flags():
    """Raise an InputError for conflicting flags."""
    if not (FLAGS.test or FLAGS.text or FLAGS.correct):
        raise InputError("Give --test, --text or --correct.")
    refuse_without(["output_dir"], "test")
    refuse_without(["max_edits", "edit_probability"], "correct")
    if FLAGS.tokenizer_dir:
        of_words = ["unit", "min_count", "correct"]
        refuse_beside(of_words, f"tokenizer_dir={FLAGS.tokenizer_dir}, all of whose pieces count")
    if FLAGS.unit == "characters":
        refuse_beside(["correct"], "unit=characters")


def main():
    check_flags()
    output = FLAGS.output_dir and f"{FLAGS.output_dir}/evaluation.json"
    split, vocabulary = baselines.SPLITTERS[FLAGS.unit], None
    if FLAGS.tokenizer_dir:
        tokenizer = text.load_tokenizer(FLAGS.tokenizer_dir)
        split, vocabulary = tokenizer.tokens, tokenizer.tokens_by_id()
    settings = dataclass_flags.read(baselines.NgramSettings)
    texts = map(split, data_flags.read_documents(FLAGS.train))
    model = baselines.NgramModel(texts, settings, vocabulary)
    if FLAGS.test:
        tests = data_flags.read_documents(FLAGS.test)
        figures = baselines.evaluate_ngrams(model, tests, split)
        for name, value in figures.items():
            print(f"{name:20} {value:.4f}" if isinstance(value, float) else f"{name:20} {value}")
        if output:
            write_json(output, {"texts": FLAGS.test, "figures": figures})
    for beginning in FLAGS.text:
        nexts = model.next_tokens(split(beginning))
        print(f"{beginning}:", ", ".join(f"{token} {share:.3f}" for token, share in nexts))
    if FLAGS.correct:
        corrector = baselines.SpellingCorrector(
            model, dataclass_flags.read(baselines.SpellingSettings)
        )
        for written in FLAGS.correct:
            print(" ".join(corrector.correct(split(written))))


if __name__ == "__main__":
    entry_point.run(main)
