"""Answers that stand in a text, as in SQuAD 1.1 and 2.0."""

import collections
import dataclasses
import pathlib
import re
import string

import numpy as np

from tfnlp.errors import InputError
from tfnlp.files import read_json, write_json
from tfnlp.losses import cross_entropy
from tfnlp.text.answers import answer_places, best_answers


@dataclasses.dataclass
class Questions:
    """Questions, each with a text that may hold its answer.

    Args:
        ids: a list of strings.
        questions: a list of strings.
        contexts: a list of strings.
        answers: for each question a list of (first character, text); an empty list where the
            text does not answer it.
    """

    ids: list
    questions: list
    contexts: list
    answers: list

    def __len__(self):
        return len(self.questions)


def read_questions(path):
    """Reads a file in the JSON format of SQuAD 1.1 or 2.0.

    Raises:
        InputError: if the file is missing or no such JSON, or an answer does not stand in its
            context where the file says.
    """
    path = pathlib.Path(path)
    found = Questions([], [], [], [])
    try:
        for article in read_json(path)["data"]:
            for paragraph in article["paragraphs"]:
                context = paragraph["context"]
                for qa in paragraph["qas"]:
                    answers = [] if qa.get("is_impossible") else qa["answers"]
                    pairs = [(a["answer_start"], a["text"]) for a in answers]
                    for start, text in pairs:
                        if context[start : start + len(text)] != text:
                            raise InputError(
                                f"{path}: the answer {text!r} of question {qa['id']} is not in "
                                f"its context at character {start}."
                            )
                    found.ids.append(str(qa["id"]))
                    found.questions.append(qa["question"].strip())
                    found.contexts.append(context)
                    found.answers.append(pairs)
    except (KeyError, TypeError) as e:
        raise InputError(
            f"{path} is not in SQuAD's JSON format ({type(e).__name__}: {e})."
        ) from None
    if not found.questions:
        raise InputError(f"{path} holds no questions.")
    return found


class Answering:
    """Where an answer starts and ends (Devlin et al. 2019, sections 4.2 and 4.3).

    Long texts are read in windows. A window without the answer is taught to point at its
    first special token, which is also what "no answer" is.

    Args:
        stride: tokens that a window shares with the one before.
        null_answers: whether there may be none (SQuAD 2.0).
    """

    head = "answerer"
    num_classes = None
    label_names = None
    outputs = ("start_logits", "end_logits")
    monitor = "f1"

    def __init__(self, stride=64, null_answers=False):
        self.stride = stride
        self.null_answers = null_answers

    def encode(self, tokenizer, examples, max_length):
        longest = max(len(tokenizer.tokens(q)) for q in set(examples.questions))
        room = max_length - tokenizer.num_special_tokens - longest
        if room < 16:
            raise InputError(
                f"--max_length={max_length} leaves {room} tokens for a text beside a question of "
                f"{longest} tokens; give at least {max_length - room + 16}."
            )
        windows = tokenizer.encode_windows(
            examples.questions, examples.contexts, max_length, min(self.stride, room // 2)
        )
        labels = [answer_places(window, examples.answers[window.example]) for window in windows]
        return windows, np.array(labels, "int32")

    def loss(self, labels, outputs, sample_weight=None):
        start = cross_entropy(labels[:, 0], outputs["start_logits"], sample_weight)
        end = cross_entropy(labels[:, 1], outputs["end_logits"], sample_weight)
        return (start + end) / 2

    def n_best(self, examples, encodings, outputs, count=20):
        """The best answers of each question, best first.

        Returns:
            For each question a list of at most `count` `Answer`s, one of them the empty one
            where there may be none.
        """
        return best_answers(
            encodings,
            outputs["start_logits"],
            outputs["end_logits"],
            examples.contexts,
            self.null_answers,
            count,
        )

    def score(self, examples, encodings, outputs):
        best = self.n_best(examples, encodings, outputs, 1)
        texts = [answers[0].text for answers in best]
        rights = [[text for _, text in answers] or [""] for answers in examples.answers]
        pairs = list(zip(texts, rights, strict=True))
        return {
            "f1": float(np.mean([max(f1(t, r) for r in right) for t, right in pairs])),
            "exact_match": float(
                np.mean([max(normalise(t) == normalise(r) for r in right) for t, right in pairs])
            ),
        }


def write_n_best(task, run_folder, examples, max_length, count=5):
    """Writes a run's best answers to each question to its n_best.json.

    Args:
        task: an `Answering`.
        run_folder: holds the fine-tuned model in `best`.
        examples: `Questions`.
        max_length: the longest input in tokens.
        count: answers for each question.
    """
    from tfnlp.checkpoints import load_model
    from tfnlp.text import load_tokenizer
    from tfnlp.training import encode_batches
    from tfnlp.training.predict import predict

    best = pathlib.Path(run_folder) / "best"
    batches = encode_batches(task, load_tokenizer(best), examples, max_length, 32)
    outputs = predict(load_model(best, task.head), batches, task.outputs)
    answers = task.n_best(examples, batches.encodings, outputs, count)
    write_json(
        pathlib.Path(run_folder) / "n_best.json",
        {
            i: [dataclasses.asdict(answer) for answer in found]
            for i, found in zip(examples.ids, answers, strict=True)
        },
    )


def normalise(text):
    """An answer as SQuAD's official script compares it.

    Rajpurkar et al. 2016, 'SQuAD', section 6.1: lower case, without punctuation, articles and
    spare white space.
    """
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(found, right):
    """The overlap of two answers' words, as SQuAD's official script counts it."""
    a, b = normalise(found).split(), normalise(right).split()
    if not a or not b:
        return float(a == b)
    common = sum((collections.Counter(a) & collections.Counter(b)).values())
    return 2 * common / (len(a) + len(b))
