"""Answers in a text from the logits of their first and last tokens."""

import dataclasses

import numpy as np

from tfnlp.text.texts import character_end

# An answer longer than so many tokens is none.
MAX_ANSWER_TOKENS = 30
# How many starts and ends of a window are paired.
CANDIDATES = 20


@dataclasses.dataclass(frozen=True)
class Answer:
    """One answer.

    Args:
        text: of the context; empty where there is none.
        start: its first character in the context.
        end: the character after its last.
        score: the sum of both logits.
        cut: whether the question was longer than is read, and its end ignored.
        probability: the softmax of the score among all answers that were found to the question;
            None before they are compared.
    """

    text: str
    start: int
    end: int
    score: float
    cut: bool = False
    probability: float | None = None


def best_answers(windows, start_logits, end_logits, contexts, null_answers=False, count=20):
    """The best answers of each question, from all windows over its text.

    Devlin et al. 2019, sections 4.2 and 4.3: the highest sum of both logits. Probabilities are
    the softmax of the sums, as in BERT's own code: over the likely spans of all windows, however
    few are asked for, and no answer where there may be none. (The pipeline of `transformers` 4
    multiplies the softmax of starts by that of ends, in each window by itself, so that its
    scores of several windows do not add up to 1.)

    Args:
        windows: from `Tokenizer.encode_windows`.
        start_logits: for each window (L,).
        end_logits: likewise.
        contexts: the text of each question.
        null_answers: whether there may be none.
        count: the most answers to give for a question.

    Returns:
        For each question a list of `Answer`s, best first, at least one; where there may be
        none, the empty one is among them.
    """
    found = [{} for _ in contexts]
    none = [np.inf] * len(contexts)
    cut = [False] * len(contexts)
    for window, start, end in zip(windows, start_logits, end_logits, strict=True):
        i = window.example
        cut[i] = window.cut
        null = null_place(window)
        none[i] = min(none[i], float(start[null] + end[null]))
        for answer in window_answers(window, start, end, contexts[i]):
            key = answer.start, answer.end
            if key not in found[i] or found[i][key].score < answer.score:
                found[i][key] = answer
    lists = []
    for i, answers in enumerate(found):
        best = list(answers.values())
        if null_answers:
            best.append(Answer("", 0, 0, none[i], cut[i]))
        best = sorted(best, key=lambda a: -a.score) or [Answer("", 0, 0, 0.0, cut[i])]
        chances = np.exp(np.array([answer.score for answer in best]) - best[0].score)
        chances /= chances.sum()
        lists.append(
            [
                dataclasses.replace(answer, probability=float(chance))
                for answer, chance in zip(best[:count], chances[:count], strict=True)
            ]
        )
    return lists


def window_answers(window, start, end, context, count=CANDIDATES):
    """The answers that a window's logits (L,) point at, the most likely ones, unordered.

    White space around an answer is not of it, though some tokenizers say that a token begins with
    the space before it; tokens of nothing else neither start nor end one. An accent behind an
    answer is of it, though some tokenizers drop it.
    """
    spans = {
        place: without_spaces(context, *window.offsets[place])
        for place, source in enumerate(window.sources)
        if source == 1
    }
    places = np.array([place for place, (a, b) in spans.items() if a < b], int)
    firsts = places[np.argsort(-start[places])[:count]]
    lasts = places[np.argsort(-end[places])[:count]]
    ends = {place: character_end(context, spans[place][1]) for place in lasts}
    return [
        Answer(
            context[spans[a][0] : ends[b]],
            spans[a][0],
            ends[b],
            float(start[a] + end[b]),
            window.cut,
        )
        for a in firsts
        for b in lasts
        if a <= b < a + MAX_ANSWER_TOKENS
    ]


def without_spaces(text, start, end):
    """The span (start, end) of a text without the white space at its ends; empty if all is."""
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())


def answer_places(windows, answers):
    """Return the first and last token of a question's first answer in each window of its text.

    These are the tokens that share a character with the answer. What a normaliser drops at its
    edges, such as an accent or U+200E, is of no token.

    Args:
        windows: all of the question, from `Tokenizer.encode_windows`.
        answers: (first character, text) of each right answer; empty where there is none.
            White space around an answer is not of it.

    Returns:
        Two places for each window; twice that of no answer where it does not hold the whole
        answer.
    """
    places = [(null_place(window),) * 2 for window in windows]
    if not answers:
        return places
    start, text = answers[0]
    start, end = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
    inside = [
        [
            (place, a, b)
            for place, (source, (a, b)) in enumerate(
                zip(window.sources, window.offsets, strict=True)
            )
            if source == 1 and a < end and b > start and a < b
        ]
        for window in windows
    ]
    first = min((a for tokens in inside for _, a, _ in tokens), default=None)
    last = max((b for tokens in inside for _, _, b in tokens), default=None)
    for i, tokens in enumerate(inside):
        if tokens and tokens[0][1] == first and tokens[-1][2] == last:
            places[i] = tokens[0][0], tokens[-1][0]
    return places


def null_place(window):
    """The place of the first special token, which stands for no answer."""
    return next((i for i, source in enumerate(window.sources) if source is None), 0)
