"""Predictions for many texts of any task: input, inference, output and scores.

A runner is one of `distill.runtime`, for a .tflite file, or of
`tfnlp.pipelines.keras_runners`, for a folder; both have the same methods.
"""

import dataclasses
import itertools
import pathlib
import random
import sys

from absl import logging

from tfnlp.tasks.confusion_matrix import confusion_matrix, confusion_table, only_answer
from tfnlp.text.readers import FORMATS, Examples, read_examples, read_header
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import json_text, write_json, write_text


@dataclasses.dataclass
class Inputs:
    """Inputs of a runner.

    Args:
        texts: a list of texts; for a tagger texts or lists of words, for an answerer the
            questions, for a chooser the prompts.
        seconds: the second text of each, the context, or a list of endings; or None.
        right: the gold label, tags, answers, number or index of the ending of each, from the file;
            or None.
        ids: the names of questions, or None.
    """

    texts: list
    seconds: list | None = None
    right: list | None = None
    ids: list | None = None

    def read_together(self):
        """Return the model's inputs as a list of strings, or of (text, second text) pairs.

        Words are joined with spaces, and a prompt is paired with each of its endings.
        """
        if self.seconds is None:
            # Even the first word gets a space before it, since byte-level BPE reads words so.
            return [x if isinstance(x, str) else "".join(f" {w}" for w in x) for x in self.texts]
        groups = zip(self.texts, self.seconds, strict=True)
        return [
            (text, second)
            for text, given in groups
            for second in ([given] if isinstance(given, str) else given)
        ]

    def take(self, places):
        """Return the inputs at some indices, in their order."""
        columns = {
            name: None if column is None else [column[place] for place in places]
            for name, column in vars(self).items()
        }
        return Inputs(**columns)

    def draw(self, count):
        """Draw at most `count` inputs at random, since files may be sorted by label or length."""
        total = len(self.texts)
        return self.take(sorted(random.Random(0).sample(range(total), min(count, total))))

    def each_text(self):
        """Return all texts singly, in a list, without duplicates of second texts."""
        together = self.read_together()
        if self.seconds is None:
            return together
        firsts, seconds = zip(*together, strict=True)
        again = itertools.groupby(firsts)  # a prompt is paired with each of its endings
        return [*(text for text, _ in again), *dict.fromkeys(seconds)]


@dataclasses.dataclass
class Columns:
    """Columns of a file of inputs; where None, those that the task's recipe expects.

    `tagged` is whether a tagger's file has a word and its tag on each line, rather than a text.
    """

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    question: str | None = None
    prompt: str | None = None
    choices: list | None = None
    tagged: bool | None = None


def given_inputs(kind, text, pair=(), question=(), ending=()):
    """Build `Inputs` from texts that are passed one by one.

    Args:
        kind: of the runner.
        text: a list of strings; for an answerer one context, or one for each question; for a
            chooser the one prompt.
        pair: the second texts, for a classifier or scorer.
        question: the questions, for an answerer.
        ending: the endings, for a chooser.

    Raises:
        InputError: if the kind takes others, or their numbers do not match.
    """
    _check_kind(kind)
    takes = {"classifier": "pair", "scorer": "pair", "answerer": "question", "chooser": "ending"}
    for name, given in (("pair", pair), ("question", question), ("ending", ending)):
        if given and takes.get(kind) != name:
            others = f"`text` and `{takes[kind]}`" if kind in takes else "`text`"
            hint = ""
            if (kind, name) == ("scorer", "ending"):
                hint = "; a chooser's file of an older version, which calls it so, export anew"
            raise InputError(f"A model of the kind {kind} takes {others}, and no `{name}`{hint}.")
    if kind == "answerer":
        if not question or len(text) not in (1, len(question)):
            raise InputError(
                "An answerer takes each `question` with the one `text` to look in, or with one of "
                f"its own; given are {len(question)} questions and {len(text)} texts."
            )
        return Inputs(question, text if len(text) > 1 else text * len(question))
    if kind == "chooser":
        if len(text) != 1 or len(ending) < 2:
            raise InputError(
                "A chooser takes one `text`, the beginning, and `ending` twice or more; given are "
                f"{len(text)} texts and {len(ending)} endings."
            )
        return Inputs(text, [ending])
    if pair and len(pair) != len(text):
        raise InputError(
            f"Each `text` needs one `pair`; given are {len(text)} texts and {len(pair)} pairs."
        )
    return Inputs(text, pair or None)


def read_inputs(kind, path, labels=None, columns=None, settings=None):
    """Read `Inputs` from a file, in the formats of the task's recipe, or plain texts.

    Args:
        kind: of the runner.
        path: of the file: for a classifier, scorer or chooser TSV, CSV or JSON Lines; for a tagger
            CoNLL columns, or a table with a column of texts; for an answerer SQuAD's JSON, or a
            table with questions and texts; a .txt has a text on each line, or may have a tagger's
            columns.
        labels: of the model.
        columns: `Columns`. Gold labels are read if the file has them. A column that is named must
            exist, and hold labels of the model.
        settings: of the model.

    Raises:
        InputError: as the task's reader.
    """
    _check_kind(kind)
    path, columns = pathlib.Path(path), columns or Columns()
    if kind == "tagger":
        return _read_tagged(path, labels, columns, (settings or {}).get("unit", "word"))
    return READERS[kind](path, labels, columns)


def _check_kind(kind):
    if kind == "embedder":
        raise InputError(
            "An embedder gives vectors, not answers; use distill.runtime.TextEmbedder, or "
            "recipes.extract_features of the model's folder."
        )


def _read_classified(path, labels, columns):
    def read(label_column):
        found = read_examples(path, columns.text or "sentence", columns.pair, label_column, labels)
        right = found.labels and [found.label_names[i] for i in found.labels]
        return Inputs(found.texts, found.pairs, right)

    return _with_what_is_right(read, path, columns.label, "label")


def _read_scored(path, labels, columns):
    header = _header(path)
    text = columns.text or ("sentence1" if "sentence1" in header else "sentence")
    pair = columns.pair
    if pair is None and columns.text is None and "sentence2" in header:
        pair = "sentence2"

    def read(label_column):
        if label_column is None:
            found = read_examples(path, text, pair, None)
        else:
            from tfnlp.tasks import read_scored_pairs

            found = read_scored_pairs(path, text, pair, label_column)
        return Inputs(found.texts, found.pairs, found.labels)

    return _with_what_is_right(read, path, columns.label, "score")


def _read_tagged(path, labels, columns, unit):
    from tfnlp.tasks.tagged_files import holds_tags, read_tagged

    text, tagged = columns.text or "sentence", columns.tagged
    if tagged is None and not columns.text and _suffix(path) == ".txt":
        tagged = holds_tags(path, labels)
    elif tagged is None:
        tagged = not columns.text and text not in _header(path)
    if not tagged:
        return Inputs(read_examples(path, text, label_column=None).texts)
    found = read_tagged(path, labels, unit)
    return Inputs(found.sentences, None, found.tags)


def _read_asked(path, labels, columns):
    if _suffix(path) == ".json":
        from tfnlp.tasks import read_questions

        found = read_questions(path)
        return Inputs(found.questions, found.contexts, found.answers, found.ids)
    question, context = columns.question or "question", columns.text or "context"
    found = read_examples(path, question, context, None)
    return Inputs(found.texts, found.pairs)


def _read_choices(path, labels, columns):
    from tfnlp.tasks import read_choices

    def read(label_column):
        found = read_choices(path, columns.prompt or "prompt", columns.choices, label_column)
        return Inputs(found.prompts, found.endings, found.labels)

    return _with_what_is_right(read, path, columns.label, "label")


READERS = {
    "classifier": _read_classified,
    "scorer": _read_scored,
    "answerer": _read_asked,
    "chooser": _read_choices,
}


def _with_what_is_right(read, path, label_column, usual):
    """Return `read(label_column)`; without labels if the default column is absent or unfit."""
    if label_column is not None:
        return read(label_column or None)
    if usual not in _header(path):
        return read(None)
    try:
        return read(usual)
    except InputError as e:
        logging.warning("No score: %s", e)
        return read(None)


def _header(path):
    """Return the columns of a table; [] for a file of another format."""
    if _suffix(path) not in FORMATS or _suffix(path) == ".txt":
        return []
    return read_header(path)


def _suffix(path):
    return pathlib.Path(path.name.lower().removesuffix(".gz")).suffix


# Prediction method of a runner, by its kind.
METHODS = {
    "classifier": "classify",
    "string classifier": "classify",
    "scorer": "score",
    "chooser": "choose_all",
    "embedder": "embed",
}


def predict_inputs(runner, inputs):
    """Return a runner's prediction for each of the inputs, a list.

    Returns:
        For a classifier `Classification`s, for a scorer floats, for a tagger `TaggedText`s, for an
        answerer the best `Answer`s, for a chooser `Choice`s, for an embedder vectors (D,).
    """
    if runner.kind == "tagger":
        return runner.read(inputs.texts)
    if runner.kind == "answerer":
        return [found[0] for found in runner.answer_all(inputs.texts, inputs.seconds)]
    given = [inputs.texts] if inputs.seconds is None else [inputs.texts, inputs.seconds]
    return getattr(runner, METHODS[runner.kind])(*given)


# Attribute of a prediction that is its answer, by kind; others are numbers or vectors.
ANSWERS = {
    "classifier": "label",
    "string classifier": "label",
    "tagger": "tags",
    "answerer": "text",
    "chooser": "place",
}


def answers_of(kind, predictions):
    """Return the label, tags, text, index, number or vector of each prediction, a list."""
    if kind not in ANSWERS:
        return list(predictions)
    return [getattr(prediction, ANSWERS[kind]) for prediction in predictions]


def summarise(runner, inputs, predictions, positive_label=None):
    """Summarise all predictions.

    Args:
        runner, inputs: as in `predict_inputs`.
        predictions: its result.
        positive_label: for a classifier, the class whose F1 is a score too; None for none.

    Returns:
        A dict of `texts`, `cut` (the number of truncated texts), and the result of `score` if the
        inputs have gold labels.
    """
    if runner.kind == "scorer":
        encodings = runner.tokenizer.encode(inputs.texts, inputs.seconds, runner.max_length)
        cut = int(encodings.truncated.sum())
    else:  # taggers split long texts into windows
        cut = sum(getattr(found, "truncated", False) for found in predictions)
    summary = {"texts": len(predictions), "cut": cut}
    return summary | (score(runner, inputs, predictions, positive_label) if inputs.right else {})


def _task_and_examples(runner, inputs, positive_label=None):
    """Build the task of a runner, and labelled examples of it from the inputs."""
    from tfnlp.tasks import Classification, MultipleChoice, QuestionAnswering, Regression, Tagging
    from tfnlp.tasks.question_answering import Questions
    from tfnlp.tasks.tagging import TaggedSentences

    texts, right = inputs.texts, inputs.right
    if runner.kind == "tagger":
        unit = "character" if runner.by_character else "word"
        return Tagging(runner.labels, unit=unit), TaggedSentences(texts, right)
    if runner.kind == "answerer":
        return QuestionAnswering(), Questions(inputs.ids, texts, inputs.seconds, right)
    task = MultipleChoice() if runner.kind == "chooser" else Regression()
    if runner.kind == "classifier":
        task = Classification(runner.labels, positive_label=positive_label)
        right = [runner.labels.index(label) for label in right]
    return task, Examples(texts, None, right)


def score(runner, inputs, predictions, positive_label=None):
    """Score predictions.

    Args:
        runner, inputs, predictions, positive_label: as in `summarise`.

    Returns:
        A dict of the scores that the task's recipe reports. Each has a `baseline_` counterpart, of
        always answering the commonest gold label or the mean of the gold numbers. A classifier or
        tagger has the `confusion` (`tfnlp.tasks.confusion_matrix`). `only_answer` is the answer to
        all inputs if there is just one, though the gold labels differ.

    Raises:
        InputError: if `positive_label` is none of the model's.
    """
    task, examples = _task_and_examples(runner, inputs, positive_label)
    scores = task.score_predictions(examples, answers_of(runner.kind, predictions))
    baseline = task.baseline(examples, examples)
    scores |= {f"baseline_{name}": value for name, value in baseline.items()}
    return scores | _answer_counts(runner, inputs, predictions)


def check_positive_label(kind, labels, positive_label):
    """Raise an InputError unless `positive_label` is a label of a classifier."""
    if kind != "classifier":
        raise InputError(
            f"positive_label={positive_label} is of a classifier, but the model is of the kind "
            f"{kind}; leave it out."
        )
    from tfnlp.tasks import Classification

    Classification(labels, positive_label=positive_label)


def _answer_counts(runner, inputs, predictions):
    """Return the `confusion` and the `only_answer`, as `score` does; {} for an answerer."""
    if runner.kind == "answerer":
        return {}
    right, answers = inputs.right, answers_of(runner.kind, predictions)
    if runner.kind == "tagger":
        right, answers = ([*itertools.chain(*tags)] for tags in (right, answers))
    counts = {}
    if runner.kind in ("classifier", "tagger"):
        counts["confusion"] = confusion_matrix(right, answers, runner.labels)
    answer = only_answer(right, answers)
    return counts if answer is None else counts | {"only_answer": answer}


def print_predictions(runner, inputs, predictions, positive_label=None):
    """Print a line for each prediction, then the summary."""
    for row in _rows(runner, inputs, predictions):
        print("\t".join(row))
    _print_summary(runner, summarise(runner, inputs, predictions, positive_label))


def write_predictions(folder, runner, inputs, predictions, positive_label=None):
    """Write predictions.tsv, or .jsonl for a tagger or answerer, and summary.json.

    Gold labels stand beside predictions if they are known. The summary is printed too.
    """
    folder = pathlib.Path(folder)
    if runner.kind in STRUCTURED:
        path = folder / "predictions.jsonl"
        lines = [json_text(value) for value in STRUCTURED[runner.kind](inputs, predictions)]
    else:
        path = folder / "predictions.tsv"
        second = "ending" if runner.kind == "chooser" else "pair"
        said, *others = HEADERS[runner.kind]
        gold = ["gold"] if inputs.right else []
        header = [said, *gold, *others, *([] if inputs.seconds is None else [second])]
        rows = [header, *_rows(runner, inputs, predictions)]
        lines = ["\t".join(row) for row in rows]
    write_text(path, "".join(f"{line}\n" for line in lines))
    summary = summarise(runner, inputs, predictions, positive_label)
    write_json(folder / "summary.json", summary)
    print(f"Wrote {path}.", file=sys.stderr)
    _print_summary(runner, summary)


# Columns of predictions.tsv, without the gold label; the second text follows.
HEADERS = {
    "classifier": ("label", "probability", "sentence"),
    "scorer": ("score", "sentence"),
    "chooser": ("choice", "probability", "prompt"),
}


def _rows(runner, inputs, predictions):
    """Yield the columns of each printed line, without tabs and line breaks in them."""
    for i, (text, found) in enumerate(zip(inputs.texts, predictions, strict=True)):
        second = [] if inputs.seconds is None else [inputs.seconds[i]]
        if runner.kind == "classifier":
            row = [found.label, f"{found.probabilities[found.label]:.4f}", text, *second]
        elif runner.kind == "scorer":
            row = [f"{found:.4f}", text, *second]
        elif runner.kind == "chooser":
            row = [str(found.place), f"{max(found.probabilities):.4f}", text, found.ending]
        elif runner.kind == "answerer":
            row = [found.text or "(no answer)", f"{found.probability:.4f}", text]
        elif runner.of_entities:
            named = [f"{e.label} {e.score:.4f} {e.text}" for e in found.entities]
            row = ["; ".join(named) or "(no entity)", found.text]
        else:
            tagged = zip(found.words, found.tags, strict=True)
            row = [" ".join(f"{word}/{tag}" for word, tag in tagged)]
        if inputs.right and runner.kind in HEADERS:
            row.insert(1, str(inputs.right[i]))
        yield [" ".join(column.split()) for column in row]


def _tagged_values(inputs, predictions):
    for i, found in enumerate(predictions):
        parts = {
            "word": found.words,
            "span": found.spans,
            "tag": found.tags,
            "score": found.scores,
        }
        if inputs.right:
            parts["gold"] = inputs.right[i]
        yield {
            "text": found.text,
            "words": [
                dict(zip(parts, word, strict=True)) for word in zip(*parts.values(), strict=True)
            ],
            "entities": [dataclasses.asdict(entity) for entity in found.entities],
        }


def _answer_values(inputs, predictions):
    ids = inputs.ids or range(len(predictions))
    for number, (i, found) in enumerate(zip(ids, predictions, strict=True)):
        value = {"id": i, "question": inputs.texts[number]} | dataclasses.asdict(found)
        if inputs.right:
            value["gold"] = [text for _, text in inputs.right[number]]
        yield value


# Kinds whose predictions are written as JSON Lines, an object for each input.
STRUCTURED = {"tagger": _tagged_values, "answerer": _answer_values}


def _print_summary(runner, summary):
    """Print a summary to standard error, so that the predictions can be piped."""
    texts = summary["texts"]
    if summary["cut"]:
        cut = f"{summary['cut']} of {texts} texts were longer than the {runner.max_length} tokens"
        print(f"{cut} that are read of each.", file=sys.stderr)
    other = ("texts", "cut", "confusion", "only_answer")
    for name, value in summary.items():
        if name not in other and not name.startswith("baseline_"):
            baseline = summary.get(f"baseline_{name}")
            beside = "" if baseline is None else f" (baseline {baseline:.4f})"
            print(f"{name} {value:.4f} on {texts} texts{beside}", file=sys.stderr)
    if "only_answer" in summary:
        answer = summary["only_answer"]
        print(f"All get one answer, {answer}, though the right ones differ.", file=sys.stderr)
    for line in confusion_table(summary["confusion"]) if "confusion" in summary else ():
        print(line, file=sys.stderr)
