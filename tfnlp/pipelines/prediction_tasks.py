"""Prediction tasks: each reads inputs, and scores, compares and formats predictions."""

import dataclasses
import itertools
import pathlib

import numpy as np
from absl import logging

from tfnlp import tasks
from tfnlp.pipelines.inputs import Columns, Inputs
from tfnlp.tasks import kinds
from tfnlp.tasks.classifier_settings import Decision
from tfnlp.tasks.confusion_matrix import confusion_matrix, only_answer
from tfnlp.tasks.multiple_choice import Choices
from tfnlp.tasks.question_answering import Questions
from tfnlp.tasks.tagged_files import TaggedSentences, holds_tags, read_tagged
from tfnlp.text.decoding.tags import ENTITY_TAG, Entity
from tfnlp.text.reading.label_sets import LabelColumns, read_label_sets
from tfnlp.text.reading.readers import (
    Examples,
    has_columns,
    holds_objects,
    read_examples,
    read_header,
)
from tfnlp.text.reading.words import WordSplitter
from tfnlp.utils.errors import InputError


class PredictionTask:
    """Base class of prediction tasks.

    A child has `task`, which returns that of `tfnlp.tasks`, and `_read`, may have `_join`,
    `answer`, `examples` and figures of its own, and formats a prediction by `row` (the columns of
    a printed line, those of `header` and of a second text), without a header by `json_value`, and
    in a table by `values` (the entries of `columns`).

    Args:
        labels: of the model, or None.
        settings: of the model, or None.
        positive_label: of a classifier, the class whose F1 is a score too; None for none.
        probabilities: whether rows have the probability of each label, which only labels of texts
            have, in place of that of the answer.

    Raises:
        InputError: if the task or the labels do not have the `positive_label` or `probabilities`.
    """

    kind = None
    option = None  # name of the option with second texts: pair, question or ending
    takes = "`text` alone"  # the options, in words
    text_column = "sentence"  # header of the texts
    second_column = "pair"  # and of the second texts
    columns = ("prediction",)  # of a table beside those of its inputs
    full_values = None  # entries of `columns` without empty lists, which have no types
    header = None  # columns of predictions.tsv; None for JSON Lines
    figure, least = "agreement", 0.98  # figure of `compare`, and the least without a warning
    answer_name = None  # of what `compare` counts
    labelled = False  # whether predictions are labels, which a confusion matrix counts
    label_columns = ()  # where gold labels are looked for in a table, in this order

    def __init__(self, labels=None, settings=None, positive_label=None, probabilities=False):
        self.labels = labels
        self.settings = settings or {}
        self.positive_label = positive_label
        self.probabilities = probabilities
        if probabilities and not isinstance(self, LabelPredictions):
            raise InputError(
                f"probabilities={probabilities} needs labels of texts, but the model is of the "
                f"kind {self.kind}; leave it out."
            )
        if positive_label is not None:
            if self.kind != kinds.CLASSIFIER:
                raise InputError(
                    f"positive_label={positive_label} is for a classifier, but the model is of "
                    f"the kind {self.kind}; leave it out."
                )
            self.task()  # fails where it is no label

    @property
    def suffix(self):
        """Ending of the file of predictions."""
        return ".jsonl" if self.header is None else ".tsv"

    def values(self, prediction):
        """Return the entries of `columns` for a prediction, for JSON and Arrow."""
        return [self.answer(prediction)]

    def cells(self, prediction):
        """Return the entries of `columns` for a prediction, for CSV and TSV."""
        return self.values(prediction)

    def has_rows(self, path, columns):
        """Return whether each row of a file is one of the inputs that `read` gives."""
        return has_columns(pathlib.Path(path))

    def inputs_of(self, texts, pair=(), question=(), ending=()):
        """Build `Inputs` from lists of texts, and of the second texts that the task `takes`.

        Raises:
            InputError: if the task takes others, or their numbers do not match.
        """
        second_texts = {"pair": pair, "question": question, "ending": ending}
        others = any(x for name, x in second_texts.items() if name != self.option)
        inputs = None if others else self._join(texts, second_texts.get(self.option))
        if inputs is None:
            counts = {"text": texts} | second_texts
            counts = [f"{len(x)} of `{name}`" for name, x in counts.items() if x]
            raise InputError(
                f"A model of the kind {self.kind} takes {self.takes}; given are "
                f"{' and '.join(counts)}."
            )
        return inputs

    def _join(self, texts, pairs):
        """Return `Inputs`, or None if the numbers of texts do not match."""
        return None if pairs and len(pairs) != len(texts) else Inputs(texts, pairs or None)

    def read(self, path, columns=None):
        """Read `Inputs` from a file, in the formats of the task's recipe, or plain texts.

        Args:
            path: of the file: for a classifier, scorer or chooser TSV, CSV or JSON Lines; for a
                tagger CoNLL columns, or a table with a column of texts; for an answerer SQuAD's
                JSON, or a table with questions and texts; a .txt has a text on each line, or may
                have a tagger's columns.
            columns: `Columns`. Gold labels are read if the file has them. A column that is named
                must exist, and hold labels of the model.

        Raises:
            InputError: as the task's reader.
        """
        path, columns, problem = pathlib.Path(path), columns or Columns(), None
        for place in self._label_places(_header(path)) if columns.label is None else ():
            try:
                return self._read(path, columns, place)
            except InputError as e:
                problem = problem or e
        inputs = self._read(path, columns, columns.label or None)  # raises where texts are wrong
        if problem:
            logging.warning("No score: %s", problem)
        return inputs

    def read_labelled(self, path, columns=None):
        """Return the labelled examples of a file; arguments and errors as in `read`.

        Raises:
            InputError: if the file has no labels of the task, or some that the model has not.
        """
        path, columns = pathlib.Path(path), columns or Columns()
        label = columns.label or None
        if columns.label is None:
            label = next(iter(self._label_places(_header(path))), None)
        inputs = self._read(path, columns, label)
        if not inputs.gold:
            raise InputError(
                f"{path} has no labels of a {self.kind}; name their column as `label_column`."
            )
        return self.examples(inputs)

    def _label_places(self, header):
        """Return the columns of a table, by its header, that may have gold labels."""
        return [name for name in self.label_columns if name in header]

    def answers(self, predictions):
        """Return the label, text, index, number or vector of each prediction, or each tag."""
        return [self.answer(prediction) for prediction in predictions]

    def answer(self, prediction):
        """Return the label, text, index, number or vector of a prediction, or its tags."""
        return prediction

    def gold_text(self, gold):
        """Return a gold answer as it is written, a text, or a list where there is no header."""
        return str(gold)

    def compare(self, answers, expected):
        """Compare two results of `answers` for the same inputs.

        Returns:
            A dict of figures:

            - for a classifier, tagger, answerer or chooser `agreement`, the share of equal labels
              (tags of words, answers to questions);
            - for a scorer `correlation` (Pearson), None if a side is constant, and
              `largest_difference`;
            - for an embedder `cosine`, the mean, and `least_cosine`, of the worst text.
        """
        equal = [a == b for a, b in zip(answers, expected, strict=True)]
        return {"agreement": float(np.mean(equal or [1.0]))}

    def describe(self, figures):
        """Return figures of `compare` in words."""
        return f"the same {self.answer_name} in {figures['agreement']:.2%}."

    def count_truncated(self, pipeline, inputs, predictions):
        """Count the truncated texts."""
        return sum(prediction.truncated for prediction in predictions)

    def score(self, inputs, predictions):
        """Score predictions against the gold answers.

        Returns:
            A dict of the scores that the task's recipe reports. Each has a `baseline_`
            counterpart, of always answering the commonest gold label or the mean of the gold
            numbers. A classifier or tagger has the `confusion`
            (`tfnlp.tasks.confusion_matrix`). `only_answer` is the answer to all inputs if there is
            just one, though the gold labels differ.
        """
        return self.score_answers(inputs, [self.answer(prediction) for prediction in predictions])

    def score_answers(self, inputs, predicted):
        """Score the labels, texts, indices, numbers or lists of tags of `score`'s predictions.

        It reads the gold answers and the ids of the inputs alone.
        """
        task, examples = self.task(), self.examples(inputs)
        scores = task.score_predictions(examples, predicted)
        scores |= {f"baseline_{k}": v for k, v in task.baseline(examples).items()}
        gold, answers = task.answers(examples, predicted)
        if self.labelled:
            labels = dict.fromkeys([*self.labels, *answers])  # with that of no answer
            scores["confusion"] = confusion_matrix(gold, answers, [*labels])
        answer = only_answer(gold, answers)
        return scores if answer is None else scores | {"only_answer": answer}

    def examples(self, inputs):
        """Return the inputs as the examples of the task."""
        return Examples(inputs.texts, inputs.second_texts, inputs.gold)


class LabelPredictions(PredictionTask):
    """Predictions of a classifier."""

    kind = kinds.CLASSIFIER
    option = "pair"
    takes = "`text`, and a `pair` for each or none"
    answer_name = "label"
    label_columns = ("label",)
    labelled = True
    probability_column = "probability"  # of the answer

    @property
    def header(self):
        return (self.answer_name, *self._probability_columns, self.text_column)

    @property
    def columns(self):
        return ("prediction", *self._probability_columns)

    @property
    def _probability_columns(self):
        return self.labels if self.probabilities else [self.probability_column]

    def values(self, prediction):
        if self.probabilities:
            return [self.answer(prediction), *map(float, prediction.probabilities.values())]
        return [self.answer(prediction), self._answer_probability(prediction)]

    def task(self):
        decision = Decision.from_settings(self.settings)
        return tasks.Classification(
            self.labels, positive_label=self.positive_label, decision=decision
        )

    def _read(self, path, columns, label_column):
        text = columns.text or "sentence"
        examples = read_examples(path, text, columns.pair, label_column, self.labels)
        gold = examples.labels and [examples.label_names[i] for i in examples.labels]
        return Inputs(examples.texts, examples.pairs, gold)

    def answer(self, prediction):
        return prediction.label

    def examples(self, inputs):
        ids = [self.labels.index(label) for label in inputs.gold]
        return Examples(inputs.texts, inputs.second_texts, ids, self.labels)

    def row(self, prediction, text, *second_text):
        answer, *probabilities = self.values(prediction)
        digits = 6 if self.probabilities else 4
        columns = [",".join(f"{p:.{digits}f}" for p in np.ravel(x)) for x in probabilities]
        return [self.gold_text(answer), *columns, text, *second_text]

    def _answer_probability(self, prediction):
        """Return the probability of an answer; of the most probable label where it is none."""
        return float(max(prediction.probabilities.values()))


class LabelSetPredictions(LabelPredictions):
    """Predictions of a classifier of several labels."""

    kind = kinds.MULTI_LABEL_CLASSIFIER
    probability_column = "probabilities"
    answer_name = "labels"
    label_columns = ("labels", "label")
    labelled = False  # a confusion matrix has one label a text

    def task(self):
        return tasks.MultiLabelClassification(self.labels, separator=self._separator)

    def _label_places(self, header):
        """Return the columns, and last a tuple of one for each label."""
        each = [tuple(self.labels)] if {*self.labels} <= {*header} else []
        return super()._label_places(header) + each

    def _read(self, path, columns, label_column):
        text = columns.text or "sentence"
        if not label_column:
            examples = read_examples(path, text, columns.pair, None)
            return Inputs(examples.texts, examples.pairs)
        labels = {"each" if isinstance(label_column, tuple) else "labels": label_column}
        places = LabelColumns(text, columns.pair, separator=self._separator, **labels)
        examples = read_label_sets(path, places, self.labels)
        gold = [[self.labels[i] for i in ids] for ids in examples.labels]
        return Inputs(examples.texts, examples.pairs, gold)

    def answer(self, prediction):
        return [*prediction.labels]

    @property
    def full_values(self):
        probabilities = [0.5] * len(self.labels) if self.probabilities else [[0.5]]
        return [["label"], *probabilities]

    def cells(self, prediction):
        labels, *probabilities = self.values(prediction)
        return [self._separator.join(labels), *probabilities]

    def score_answers(self, inputs, predicted):
        by_label = self.task().label_scores(self.examples(inputs), predicted)
        return super().score_answers(inputs, predicted) | {"by_label": by_label}

    def examples(self, inputs):
        ids = {label: i for i, label in enumerate(self.labels)}
        sets = [tuple(sorted(ids[label] for label in labels)) for labels in inputs.gold]
        return Examples(inputs.texts, inputs.second_texts, sets, self.labels)

    def gold_text(self, gold):
        return self._separator.join(gold)

    @property
    def _separator(self):
        return self.settings.get("label_separator", ",")

    def _answer_probability(self, prediction):
        return [float(prediction.probabilities[label]) for label in prediction.labels]


class NumberPredictions(PredictionTask):
    """Predictions of a scorer."""

    kind = kinds.SCORER
    option = "pair"
    takes = LabelPredictions.takes
    header = ("score", "sentence")
    label_columns = ("score",)
    figure, least = "correlation", 0.99

    def task(self):
        return tasks.Regression()

    def _read(self, path, columns, label_column):
        names, pair = _header(path), columns.pair
        text = columns.text or ("sentence1" if "sentence1" in names else "sentence")
        if pair is None and columns.text is None and "sentence2" in names:
            pair = "sentence2"
        read = read_examples if label_column is None else tasks.read_scored_pairs
        examples = read(path, text, pair, label_column)
        return Inputs(examples.texts, examples.pairs, examples.labels)

    def compare(self, answers, expected):
        constant = min(np.ptp([answers, expected], axis=1)) == 0
        correlation = None if constant else float(np.corrcoef(answers, expected)[0, 1])
        difference = float(np.abs(np.subtract(answers, expected)).max())
        return {"correlation": correlation, "largest_difference": difference}

    def describe(self, figures):
        correlation = "no correlation, as one number is given for all texts"
        if figures["correlation"] is not None:
            correlation = f"correlation {figures['correlation']:.4f}"
        return f"{correlation}; the largest difference is {figures['largest_difference']:.4g}."

    def count_truncated(self, pipeline, inputs, predictions):
        texts = inputs.texts, inputs.second_texts
        return int(pipeline.tokenizer.encode(*texts, pipeline.max_length).truncated.sum())

    def values(self, prediction):
        return [float(prediction)]

    def row(self, prediction, text, *second_text):
        return [f"{prediction:.4f}", text, *second_text]


class TagPredictions(PredictionTask):
    """Predictions of a tagger, for words or, by the `unit` of the settings, characters."""

    kind = kinds.TAGGER
    columns = ("prediction", "entities")
    full_values = (
        [{"word": "word", "span": [0, 4], "tag": "O", "score": 0.5}],
        [dataclasses.asdict(Entity("word", "label", 0, 4, 0.5))],
    )
    answer_name = "tag"
    labelled = True

    @property
    def _unit(self):
        return self.settings.get("unit", "word")

    def task(self):
        stride, splitter = self.settings.get("stride", 32), None
        if "words" in self.settings:
            splitter = WordSplitter.from_settings(self.settings["words"])
        return tasks.Tagging(self.labels, stride, self._unit, splitter)

    def is_tagged(self, path, columns):
        """Return whether a file has a word and its tag on each line, rather than texts."""
        if columns.tagged is not None or columns.text:
            return bool(columns.tagged)
        if _suffix(path) == ".txt":
            return holds_tags(path, self.labels)
        return "sentence" not in _header(path)

    def has_rows(self, path, columns):
        path = pathlib.Path(path)
        # Where a table has no texts, a line of it has a word.
        return has_columns(path) and (holds_objects(path) or not self.is_tagged(path, columns))

    def _read(self, path, columns, label_column):
        if not self.is_tagged(path, columns):
            texts = read_examples(path, columns.text or "sentence", label_column=None).texts
            return Inputs(texts)
        sentences = read_tagged(path, self.labels, self._unit)
        return Inputs(sentences.sentences, None, sentences.tags)

    def answers(self, predictions):
        return list(itertools.chain.from_iterable(super().answers(predictions)))

    def answer(self, prediction):
        return prediction.tags

    def count_truncated(self, pipeline, inputs, predictions):
        return 0  # long texts are read in windows

    def examples(self, inputs):
        return TaggedSentences(inputs.texts, inputs.gold)

    def row(self, prediction, text, *second_text):
        if all(ENTITY_TAG.fullmatch(tag) for tag in self.labels):
            entities = [f"{e.label} {e.score:.4f} {e.text}" for e in prediction.entities]
            return ["; ".join(entities) or "(no entity)", prediction.text]
        tagged = zip(prediction.words, prediction.tags, strict=True)
        return [" ".join(f"{word}/{tag}" for word, tag in tagged)]

    def gold_text(self, gold):
        return gold

    def values(self, prediction):
        return [self._words(prediction), [dataclasses.asdict(x) for x in prediction.entities]]

    def _words(self, prediction, gold=None):
        """Return the words of a prediction, dicts, with the gold tag of each if they are given."""
        columns = {
            "word": prediction.words,
            "span": prediction.spans,
            "tag": prediction.tags,
            "score": prediction.scores,
        }
        if gold:
            columns["gold"] = gold
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def json_value(self, inputs, index, prediction):
        """Return a prediction as a dict for JSON Lines, with the gold tags if there are any."""
        return {
            "text": prediction.text,
            "words": self._words(prediction, inputs.gold and inputs.gold[index]),
            "entities": [dataclasses.asdict(entity) for entity in prediction.entities],
        }


class AnswerPredictions(PredictionTask):
    """Predictions of an answerer."""

    kind = kinds.ANSWERER
    option = "question"
    takes = "each `question` with the one `text` to look in, or with one of its own"
    text_column, second_column = "question", "context"
    columns = ("prediction", "probability", "start", "end")
    answer_name = "answer"

    def _join(self, contexts, questions):
        if not questions or len(contexts) not in (1, len(questions)):
            return None
        return Inputs(questions, contexts if len(contexts) > 1 else contexts * len(questions))

    def task(self):
        return tasks.QuestionAnswering()

    def values(self, prediction):
        return [getattr(prediction, name) for name in ("text", *self.columns[1:])]

    def has_rows(self, path, columns):
        return super().has_rows(path, columns) and _suffix(path) != ".json"

    def gold_text(self, gold):
        return [text for _, text in gold]

    def _read(self, path, columns, label_column):
        if _suffix(path) == ".json":
            examples = tasks.read_questions(path)
            return Inputs(examples.questions, examples.contexts, examples.answers, examples.ids)
        question, context = columns.question or "question", columns.text or "context"
        examples = read_examples(path, question, context, None)
        return Inputs(examples.texts, examples.pairs)

    def answer(self, prediction):
        return prediction.text

    def examples(self, inputs):
        return Questions(inputs.ids, inputs.texts, inputs.second_texts, inputs.gold)

    def row(self, prediction, text, *second_text):
        return [prediction.text or "(no answer)", f"{prediction.probability:.4f}", text]

    def json_value(self, inputs, index, prediction):
        """Return a prediction as a dict for JSON Lines, with id and gold answers if it has any."""
        value = {"id": inputs.ids[index]} if inputs.ids else {}
        value |= {"question": inputs.texts[index]} | dataclasses.asdict(prediction)
        if inputs.gold:
            value["gold"] = self.gold_text(inputs.gold[index])
        return value


class ChoicePredictions(PredictionTask):
    """Predictions of a chooser."""

    kind = kinds.CHOOSER
    option = "ending"
    takes = "one `text`, the beginning, and `ending` twice or more"
    text_column, second_column = "prompt", "ending"
    columns = ("prediction", "probability", "ending")
    header = ("choice", "probability", "prompt")
    answer_name = "choice"
    label_columns = ("label",)

    def _join(self, texts, endings):
        return Inputs(texts, [endings]) if len(texts) == 1 and len(endings) > 1 else None

    def task(self):
        return tasks.MultipleChoice()

    def examples(self, inputs):
        return Choices(inputs.texts, inputs.second_texts, inputs.gold)

    def _read(self, path, columns, label_column):
        prompt = columns.prompt or "prompt"
        examples = tasks.read_choices(path, prompt, columns.choices, label_column)
        return Inputs(examples.prompts, examples.endings, examples.labels)

    def answer(self, prediction):
        return prediction.place

    def values(self, prediction):
        return [prediction.place, float(max(prediction.probabilities)), prediction.ending]

    def row(self, prediction, text, *second_text):
        probability = max(prediction.probabilities)
        return [str(prediction.place), f"{probability:.4f}", text, prediction.ending]


class VectorPredictions(PredictionTask):
    """Predictions of an embedder, which are compared but neither read nor written."""

    kind = kinds.EMBEDDER
    figure, least = "cosine", 0.99

    def _refuse(self, *_):
        raise InputError(
            "An embedder gives vectors, not answers; use tfnlp.pipelines.load_runner(folder), or "
            "distill.runtime.TextEmbedder of its file, and `embed`."
        )

    _join = _read = _refuse

    def compare(self, answers, expected):
        cosines = np.prod([answers, expected], axis=0).sum(1)
        return {"cosine": float(cosines.mean()), "least_cosine": float(cosines.min())}

    def describe(self, figures):
        mean, least = figures["cosine"], figures["least_cosine"]
        return f"cosine {mean:.4f} in the mean, {least:.4f} at worst."


TASKS = {task.kind.name: task for task in (*PredictionTask.__subclasses__(), LabelSetPredictions)}
TASKS[kinds.STRING_CLASSIFIER.name] = LabelPredictions
TASKS[kinds.TOKEN_EMBEDDER.name] = VectorPredictions


def prediction_task(kind, labels=None, settings=None, positive_label=None, probabilities=False):
    """Return the `PredictionTask` of a `Kind` of models, or of its name; arguments as there."""
    return TASKS[str(kind)](labels, settings, positive_label, probabilities)


def task_of(pipeline, positive_label=None):
    """Return the `PredictionTask` of a pipeline."""
    return prediction_task(pipeline.kind, pipeline.labels, pipeline.settings, positive_label)


def _header(path):
    """Return the columns of a table; [] for a file of another format."""
    return read_header(path) if has_columns(path) else []


def _suffix(path):
    return pathlib.Path(path.name.lower().removesuffix(".gz")).suffix
