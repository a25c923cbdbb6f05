"""Scores generated texts, such as translations, against their references.

    python -m recipes.score_text --references=test.de --hypotheses=translated.de

Both files have a text on each line, or are a .tsv, .csv, .json or .jsonl file with a column of
texts; or with .gz. Printed are BLEU and chrF by sacrebleu, with the signatures under which others
can compare theirs, ROUGE, and precision, recall and F of words wherever they stand.
"""

from absl import flags

from recipes import common
from tfnlp import tasks, text
from tfnlp.utils.files import check_writable, write_json

FLAGS = flags.FLAGS
flags.DEFINE_string("references", None, "File of the texts that were due.")
flags.DEFINE_string("hypotheses", None, "File of the texts that were written, in the same order.")
flags.DEFINE_string("reference_column", "text", "Column of the references, where there are any.")
flags.DEFINE_string("hypothesis_column", "text", "Column of the hypotheses, likewise.")
flags.DEFINE_string(
    "tokenize",
    "13a",
    "How BLEU splits words: 13a as WMT does, char by characters, none at white space; or intl, "
    "zh, ja-mecab, ko-mecab.",
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
    common.run(main, tensorflow=False)
