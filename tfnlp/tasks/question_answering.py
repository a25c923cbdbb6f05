"""Extractive question answering, as in SQuAD 1.1 and 2.0."""

import collections
import dataclasses
import itertools
import re
import string

import numpy as np
from absl import logging

from tfnlp import functional
from tfnlp.tasks.answerer_settings import AnswererSettings
from tfnlp.tasks.kinds import ANSWERER
from tfnlp.tasks.task import Task
from tfnlp.text.decoding.answers import answer_places, best_answers
from tfnlp.text.reading.readers import read_json_data
from tfnlp.utils.errors import InputError


@dataclasses.dataclass
class Questions:
    """Questions with the contexts that may answer them.

    Args:
        ids, questions, contexts: lists of strings.
        answers: for each question a list of (first character, text); an empty list if the context
            does not answer it.
    """

    ids: list
    questions: list
    contexts: list
    answers: list

    def __len__(self):
        return len(self.questions)


def read_questions(path, null_answers=True):
    """Read a file in the JSON format of SQuAD 1.1 or 2.0, or KLUE-MRC, plain or gzipped.

    Args:
        path: the file.
        null_answers: whether questions may be unanswerable (SQuAD 2.0).

    Raises:
        InputError: if the file is missing or not in this format, an id is duplicated, or an answer
            is not at its stated position in the context; without `null_answers`, if a question has
            no answer.
    """
    rows = []
    try:
        for article in read_json_data(path)["data"]:
            for paragraph in article["paragraphs"]:
                rows += [_question(path, paragraph["context"], qa) for qa in paragraph["qas"]]
    except (AttributeError, KeyError, TypeError) as e:
        raise InputError(
            f"{path} is not in SQuAD's JSON format after {len(rows)} questions "
            f"({type(e).__name__}: {e})."
        ) from None
    if not rows:
        raise InputError(f"{path} holds no questions.")
    questions = Questions(*map(list, zip(*rows, strict=True)))
    ((i, count),) = collections.Counter(questions.ids).most_common(1)
    if count > 1:
        raise InputError(f"{path}: {count} questions have the id {i!r}; give each its own.")
    if not null_answers:
        _check_answered(questions, f"{path}: ")
    return questions


def _question(path, context, qa):
    """Return the id, the question, the context and the answers of a question in SQuAD's format."""
    i = str(qa["id"] if "id" in qa else qa["guid"])
    answers = []
    for answer in [] if qa.get("is_impossible") else qa["answers"]:
        text, start = answer["text"], answer["answer_start"]
        if not text.strip():
            continue
        if start < 0 or context[start : start + len(text)] != text:
            raise InputError(
                f"{path}: the answer {text!r} of question {i} is not in its context at character "
                f"{start}."
            )
        answers.append((start, text))
    return i, qa["question"].strip(), context, answers


def _check_answered(examples, place=""):
    """Raise an InputError if a question has no answer."""
    without = [i for i, answers in zip(examples.ids, examples.answers, strict=True) if not answers]
    if without:
        raise InputError(
            f"{place}{len(without)} of {len(examples)} questions, {without[0]} the first, have no "
            "answer in their text; give null_answers=True (SQuAD 2.0), or leave them out."
        )


class QuestionAnswering(AnswererSettings, Task):
    """Extractive question answering (Devlin et al. 2019, sections 4.2 and 4.3).

    Long contexts are split into windows. For a window without the answer the label is its first
    special token, which stands for "no answer". The loss is over all tokens of a batch, including
    padding, as in BERT's own code and `transformers`.

    Its arguments are those of `AnswererSettings`. Without `null_answers`, `encode` refuses
    questions without an answer, which would only teach wrong answers. A question has at most half
    a window, as in BERT's own code; the number of cut questions is logged.
    """

    kind = ANSWERER
    scores = ("f1", "exact_match")
    monitor = "f1"

    def __post_init__(self):
        super().__post_init__()
        self.settings = dict(vars(self))

    def encode(self, tokenizer, examples, max_length):
        if not self.null_answers:
            _check_answered(examples)
        texts = examples.questions, examples.contexts
        sizes = max_length, self.stride, self.max_question_length
        windows = tokenizer.encode_windows(*texts, *sizes)
        cut = len(set(windows.examples[windows.truncated]))
        if cut:
            logging.warning(
                "%d of %d questions are longer than is read; their ends were cut "
                "(max_question_length=%d, max_length=%d).",
                cut,
                len(examples),
                self.max_question_length,
                max_length,
            )
        labels = []
        for i, over_text in itertools.groupby(windows, key=lambda window: window.example):
            labels += answer_places(list(over_text), examples.answers[i])
        return windows, np.array(labels, "int32")

    def loss(self, labels, outputs, sample_weight=None):
        start, end = (
            functional.weighted_losses.cross_entropy(labels[:, i], outputs[name], sample_weight)
            for i, name in enumerate(self.kind.reads)
        )
        return (start + end) / 2

    def n_best(self, examples, encodings, outputs, count=20):
        """Return the best answers to each question, best first.

        Returns:
            For each question a list of at most `count` `Answer`s. With `null_answers` the empty
            answer is a candidate.
        """
        logits = (outputs[name] for name in self.kind.reads)
        return best_answers(encodings, *logits, examples.contexts, self.null_answers, count=count)

    def decode(self, examples, encodings, outputs):
        """Return the text of the best answer to each question; an empty one means no answer."""
        best = self.n_best(examples, encodings, outputs, 1)
        return [answers[0].text for answers in best]

    def score_predictions(self, examples, predictions):
        references = [[text for _, text in answers] or [""] for answers in examples.answers]
        return {
            "f1": _best_mean(f1, predictions, references),
            "exact_match": _best_mean(exact_match, predictions, references),
        }


def _best_mean(score, predictions, references):
    """Return the mean over questions of the best score among the correct answers to each."""
    pairs = zip(predictions, references, strict=True)
    return float(np.mean([max(score(text, r) for r in answers) for text, answers in pairs]))


def normalise(text):
    """Normalise an answer as SQuAD's official script does.

    Rajpurkar et al. 2016, 'SQuAD', section 6.1: lower case, without punctuation, articles and
    extra white space.
    """
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def exact_match(prediction, reference):
    """Return whether two answers are equal once normalised."""
    return normalise(prediction) == normalise(reference)


def f1(prediction, reference):
    """Compute the word-overlap F1 of two answers, as in SQuAD's official script."""
    a, b = normalise(prediction).split(), normalise(reference).split()
    if not a or not b:
        return float(a == b)
    common = sum((collections.Counter(a) & collections.Counter(b)).values())
    return 2 * common / (len(a) + len(b))
