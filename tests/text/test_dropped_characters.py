"""Answers and words whose edges a normaliser drops or composes, by every kind of tokenizer."""

import functools
import itertools
import unicodedata

import numpy as np
import pytest

from tfnlp.tasks import QuestionAnswering, Tagging
from tfnlp.tasks.question_answering import Questions
from tfnlp.tasks.tagging import TaggedSentences
from tfnlp.text import train_byte_level_bpe, train_characters, train_unigram, train_wordpiece
from tfnlp.text.decoding.answers import answer_places
from tfnlp.text.decoding.character_tags import token_characters
from tfnlp.text.reading.text_arguments import character_end

CORPUS = [
    "the cafe by the café in Paris was nice and good",
    "서울 한국 사람 음식 좋은 서울 사람",
    "a great film by the river in Paris",
    "Café de Paris, Paris, good film",
]
TRAINERS = {
    "wordpiece, no accents": (train_wordpiece, 200, {"strip_accents": True}),
    "wordpiece, accents": (train_wordpiece, 200, {"strip_accents": False}),
    "wordpiece, case": (train_wordpiece, 200, {"lowercase": False}),
    "byte-level BPE": (train_byte_level_bpe, 400, {}),
    "deberta": (train_byte_level_bpe, 400, {"family": "deberta"}),
    "characters": (train_characters, 400, {"family": "roberta"}),
    "albert": (train_unigram, 150, {}),
    "albert, no accents": (train_unigram, 150, {"keep_accents": False}),
    "xlnet": (train_unigram, 150, {"family": "xlnet"}),
    "deberta-v2": (train_unigram, 150, {"family": "deberta-v2"}),
    "marian": (train_unigram, 150, {"family": "marian"}),
}


def trained(kind, texts):
    train, size, options = TRAINERS[kind]
    return train(texts * 9, size, **options)


SEOUL = unicodedata.normalize("NFD", "서울")
# The answer in its text, and what of it comes back: accents and letters of Hangul do, and what no
# tokenizer has a token for does not.
ANSWERS = [
    ("the {} was nice", "cafe\u0301", "cafe\u0301"),
    ("was nice by the {}", "cafe\u0301", "cafe\u0301"),
    ("{} 사람", SEOUL, SEOUL),
    ("한국 {}", SEOUL, SEOUL),
    ("in {} good", "\u200eParis", "Paris"),
    ("in {} good", "Paris\u200e", "Paris"),
    ("{} good", "\ufeffParis", "Paris"),
    ("the film {} good", "\u00a0Paris\u00a0", "Paris"),
]


@functools.cache
def tokenizer_of(kind):
    return trained(kind, CORPUS)


@pytest.mark.parametrize("kind", TRAINERS)
@pytest.mark.parametrize("max_length", [128, 24])
def test_answers_are_taught_and_come_back(kind, max_length):
    tokenizer = tokenizer_of(kind)
    before = "a good film by a river, " * 3
    contexts = [before + text.format(answer) for text, answer, _ in ANSWERS]
    rights = [
        [(context.index(answer), answer)]
        for context, (_, answer, _) in zip(contexts, ANSWERS, strict=True)
    ]
    names = [str(i) for i in range(len(ANSWERS))]
    examples = Questions(names, ["a"] * len(ANSWERS), contexts, rights)
    task = QuestionAnswering(stride=64, null_answers=True)
    windows, labels = task.encode(tokenizer, examples, max_length)
    assert (max_length == 128) == (len(windows) == len(ANSWERS))
    taught = {w.example for w, (a, _) in zip(windows, labels, strict=True) if w.sources[a] == 1}
    # Windows of 24 have at least 9 tokens in common: bytes of jamo are more.
    in_bytes = max_length == 24 and kind in ("byte-level BPE", "deberta", "characters")
    assert taught >= {0, 1, 4, 5, 6, 7} | (set() if in_bytes else {2, 3})
    outputs = {
        name: [
            9.0 * np.eye(len(window.token_ids))[places[column]]
            for window, places in zip(windows, labels, strict=True)
        ]
        for column, name in enumerate(("start_logits", "end_logits"))
    }
    task.null_answers = False
    for i, (found,) in enumerate(task.n_best(examples, windows, outputs, 1)):
        if i in taught:
            answer, kept = ANSWERS[i][1:]
            assert found.text in (answer.strip(), kept)
            assert contexts[i][found.start : found.end] == found.text


@pytest.mark.parametrize("kind", TRAINERS)
def test_each_word_has_one_label(kind):
    tokenizer = tokenizer_of(kind)
    words = ["\u200eParis", "\ufeffgood", "\u00a0film", "cafe\u0301", "\u0301river", SEOUL, "the"]
    names = ["O", *(f"B-{i}" for i in range(len(words)))]
    examples = TaggedSentences([words * 3], [names[1:] * 3])
    whole = []
    for max_length, stride in ((250, 0), (16, 0), (16, 4)):
        windows, labels = Tagging(names, stride).encode(tokenizer, examples, max_length)
        logits = [np.eye(len(names))[np.maximum(row, 0)] for row in labels]
        outputs = {"logits": logits}
        assert Tagging(names).decode(examples, windows, outputs) == examples.tags
        of_text = [
            [label for label, source in zip(row, window.sources, strict=True) if source == 0]
            for row, window in zip(labels, windows, strict=True)
        ]
        whole = whole or of_text[0]
        assert [label for label in whole if label >= 0] == [*range(1, 8)] * 3
        # A token has the same label, or none, in each window.
        step = len(of_text[0]) - stride
        assert (len(windows) == 1) == (max_length == 250)
        for i, row in enumerate(of_text):
            assert row == whole[i * step : i * step + len(row)]


@pytest.mark.parametrize("kind", TRAINERS)
def test_characters_are_of_the_token_that_they_are_composed_in(kind):
    text = f"the cafe\u0301 {SEOUL} film"
    (window,) = tokenizer_of(kind).encode_text_windows([text], 64)
    covered = {i for _, a, b in token_characters(window, text) for i in range(a, b)}
    assert covered == {i for i, c in enumerate(text) if c != " "}


def test_ends_of_characters():
    assert character_end("cafe\u0301\u0323s", 4) == 6
    assert character_end("cafe\u0301", 5) == 5
    assert character_end("\u0301a", 0) == 0
    assert [character_end(SEOUL, i) for i in range(6)] == [0, 2, 2, 5, 5, 5]
    assert character_end("a\u200eb", 1) == 1


def test_windows_with_part_of_an_answer_have_no_answer():
    """Windows that end, or begin, in an answer have no answer, though U+200E has no token."""
    tokenizer = tokenizer_of("wordpiece, case")
    context = "the film in \u200eParis by river\u200e was good"
    windows = tokenizer.encode_windows(["a"], [context], 9, stride=3)
    spans = [[o for o, s in zip(w.offsets, w.sources, strict=True) if s == 1] for w in windows]
    answer = "\u200eParis by river\u200e"
    start = context.index(answer)
    places = answer_places(windows, [(start, answer)])
    for window, span, (first, last) in zip(windows, spans, places, strict=True):
        whole = span[0][0] <= start + 1 and span[-1][1] >= start + len(answer) - 1
        assert (window.sources[first] == 1) == whole
        if whole:
            assert context[window.offsets[first][0] : window.offsets[last][1]] == answer[1:-1]
    assert {window.sources[a] for window, (a, _) in zip(windows, places, strict=True)} == {1, None}
    assert answer_places(windows, []) == [(0, 0)] * len(windows)


def test_windows_share_the_stride_or_half_of_their_room():
    """[CLS] a [SEP], 8 tokens of the context and [SEP]."""
    tokenizer = tokenizer_of("wordpiece, case")
    context = "the film by the river in Paris was good and nice " * 3
    for stride, shared in ((0, 0), (3, 3), (4, 4), (64, 4)):
        windows = tokenizer.encode_windows(["a"], [context], 12, stride)
        parts = [[o for o, s in zip(w.offsets, w.sources, strict=True) if s] for w in windows]
        assert {len(part) for part in parts[:-1]} == {8}
        for part, later in itertools.pairwise(parts):
            assert part[8 - shared :] == later[:shared]
            assert part[-1] < later[shared]


@pytest.mark.parametrize("kind", TRAINERS)
def test_a_question_is_not_cut_within_a_letter(kind):
    tokenizer = tokenizer_of(kind)
    length = len(tokenizer.tokens("cafe\u0301"))
    cut, whole = (
        tokenizer.encode_windows([question], ["good"], 64, 0, length)[0]
        for question in ("cafe\u0301 film", "cafe\u0301")
    )
    assert cut.token_ids == whole.token_ids and (cut.truncated, whole.truncated) == (True, False)
