"""Extractive answers from the logits of their first and last tokens."""

import dataclasses

import numpy as np

from tfnlp.text.reading.text_arguments import character_end

# The maximum length of an answer in tokens.
MAX_ANSWER_TOKENS = 30
# The number of start and end candidates of a window.
CANDIDATES = 20


@dataclasses.dataclass(frozen=True)
class Answer:
    """One answer.

    Args:
        text: the answer in the context; empty for no answer.
        start: index of its first character in the context.
        end: index after its last character.
        score: the sum of the start and end logits.
        truncated: whether the question exceeded the length limit and lost its end.
        probability: the softmax of the score over all candidate answers to the question; None
            before they are compared.
    """

    text: str
    start: int
    end: int
    score: float
    truncated: bool = False
    probability: float | None = None


def best_answers(windows, start_logits, end_logits, contexts, null_answers=False, count=20):
    """Return the best answers to each question, from all windows over its text.

    The score is the sum of both logits (Devlin et al. 2019, sections 4.2 and 4.3). The probability
    is the softmax of the scores, as in BERT's own code. It runs over the likely spans of all
    windows, whatever `count` is, and over the empty answer if `null_answers` allows it.

    Args:
        windows: from `Tokenizer.encode_windows`.
        start_logits, end_logits: (L,) for each window.
        contexts: the context of each question.
        null_answers: whether a question may have no answer.
        count: the maximum number of answers for each question.

    Returns:
        For each question a list of `Answer`s, best first, with at least one entry. With
        `null_answers` the empty answer is a candidate.
    """
    spans = [{} for _ in contexts]
    null_scores = [np.inf] * len(contexts)
    truncated = [False] * len(contexts)
    for window, start, end in zip(windows, start_logits, end_logits, strict=True):
        i = window.example
        truncated[i] = window.truncated
        null = null_place(window)
        null_scores[i] = min(null_scores[i], float(start[null] + end[null]))
        for answer in window_answers(window, start, end, contexts[i]):
            key = answer.start, answer.end
            if key not in spans[i] or spans[i][key].score < answer.score:
                spans[i][key] = answer
    lists = []
    for i, answers in enumerate(spans):
        best = list(answers.values())
        if null_answers:
            best.append(Answer("", 0, 0, null_scores[i], truncated[i]))
        best = sorted(best, key=lambda a: -a.score) or [Answer("", 0, 0, 0.0, truncated[i])]
        chances = np.exp(np.array([answer.score for answer in best]) - best[0].score)
        chances = (chances / chances.sum()).tolist()
        pairs = zip(best[:count], chances[:count], strict=True)
        lists.append([dataclasses.replace(a, probability=chance) for a, chance in pairs])
    return lists


def window_answers(window, start, end, context, count=CANDIDATES):
    """Return the most likely answers of one window by its logits (L,), unordered.

    White space around an answer is stripped, since some tokenizers include the space before a word
    in its token. Tokens of white space alone neither start nor end an answer. A combining accent
    behind an answer is included, since some tokenizers drop it.
    """
    spans = {
        place: without_spaces(context, *window.offsets[place])
        for place, source in enumerate(window.sources)
        if source == 1
    }
    places = np.array([place for place, (a, b) in spans.items() if a < b], int)
    firsts = places[np.argsort(-start[places], kind="stable")[:count]]
    lasts = places[np.argsort(-end[places], kind="stable")[:count]]
    ends = {place: character_end(context, spans[place][1]) for place in lasts}
    pairs = ((a, b) for a in firsts for b in lasts if a <= b < a + MAX_ANSWER_TOKENS)
    answers = ((spans[a][0], ends[b], float(start[a] + end[b])) for a, b in pairs)
    return [Answer(context[a:b], a, b, score, window.truncated) for a, b, score in answers]


def without_spaces(text, start, end):
    """Return the span (start, end) stripped of white space; empty if it holds nothing else."""
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())


def answer_places(windows, answers):
    """Return the first and last token of the first answer to a question, in each window.

    These are the tokens that share a character with the answer. Characters that the normaliser
    drops at its edges, such as an accent or U+200E, belong to no token.

    Args:
        windows: all windows of the question, from `Tokenizer.encode_windows`.
        answers: (first character, text) of each correct answer; empty if there is none. White
            space around an answer is ignored.

    Returns:
        A pair of positions for each window. A window without the whole answer has the null
        position twice.
    """
    places = [(null_place(window),) * 2 for window in windows]
    if not answers:
        return places
    start, text = answers[0]
    start, end = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
    inside = [
        [
            (place, a, b)
            for place, (a, b) in enumerate(window.offsets)
            if window.sources[place] == 1 and a < end and b > start and a < b
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
    """Return the position of the first special token, which stands for no answer."""
    return next((i for i, source in enumerate(window.sources) if source is None), 0)
