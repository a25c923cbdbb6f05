"""Scores generated texts, such as translations, against their references.

    python -m recipes.score_text --references=test.de --hypotheses=translated.de

Both files have a text on each line, or are a .tsv, .csv, .json, .jsonl or .parquet file with a
column of texts; or with .gz. It prints BLEU and chrF by sacrebleu with their signatures, ROUGE,
and precision, recall and F of words regardless of their order.
"""

from absl import flags

from recipes.shell import entry_point
from tfnlp import tasks, text
from tfnlp.utils.files import check_writable, write_json

FLAGS = flags.FLAGS
flags.DEFINE_string("references", None, "File of the reference texts.")
flags.DEFINE_string("hypotheses", None, "File of the generated texts, in the same order.")
flags.DEFINE_string("reference_column", "text", "Column of the references in a table.")
flags.DEFINE_string("hypothesis_column", "text", "Column of the hypotheses in a table.")
flags.DEFINE_string(
    "tokenize",
    "13a",
    "Word splitting of BLEU: 13a (that of WMT), char (characters), none (white space), intl, zh, "
    "ja-mecab or ko-mecab.",
)
flags.DEFINE_string("output", None, "File to write the scores to, as JSON.")
flags.mark_flags_as_required(["references", "hypotheses"])


def main():
    if FLAGS.output:
        check_writable(FLAGS.output)
    references = list(text.read_every_text(FLAGS.references, FLAGS.reference_column))
    hypotheses = list(text.read_every_text(FLAGS.hypotheses, FLAGS.hypothesis_column))
    scores = tasks.text_scores(references, hypotheses, FLAGS.tokenize)
    for name, value in scores.items():
        print(f"{name:16} {value if isinstance(value, str) else f'{value:.4f}'}")
    if FLAGS.output:
        write_json(FLAGS.output, scores)
    return scores


if __name__ == "__main__":
    entry_point.run(main)
