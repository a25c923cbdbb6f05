"""Tagging: labels of tokens, windows and scores."""

import numpy as np
import pytest

from tfnlp.tasks import Tagging
from tfnlp.tasks.tagging import TaggedSentences
from tfnlp.text.batching.batches import IGNORED
from tfnlp.text.decoding.tags import first_tokens
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.utils.errors import InputError


def test_first_tokens_carry_the_tags(tokenizer):
    task = Tagging(["O", "B-x", "I-x"])
    examples = TaggedSentences([["unbelievable", "film", "!"]], [["B-x", "I-x", "O"]])
    windows, labels = task.encode(tokenizer, examples, 16)
    assert len(windows) == 1
    # [CLS] un ##believ ##able film ! [SEP]
    assert labels == [[IGNORED, 1, IGNORED, IGNORED, 2, 0, IGNORED]]
    logits = np.eye(3)[[0, 1, 0, 0, 2, 0, 0]]
    found = task.score(examples, windows, {"logits": [logits]})
    assert found["f1"] == found["word_accuracy"] == 1
    wrong = np.eye(3)[[0, 1, 0, 0, 0, 0, 0]]
    found = task.score(examples, windows, {"logits": [wrong]})
    assert found["f1"] == 0 and found["word_accuracy"] == pytest.approx(2 / 3)


def test_characters_are_tagged_through_their_tokens(tokenizer):
    """Scored as KLUE does: without white space, by the strict rules of IOB2, kind by kind."""
    task = Tagging(["O", "B-PS", "I-PS", "B-TI", "I-TI"], unit="character")
    assert (task.monitor, task.settings) == ("macro_f1", {"unit": "character", "stride": 32})
    text, tags = "정말  영화 film !", ["O"] * 13
    tags[:2], tags[4:6], tags[7:11] = ["B-PS", "I-PS"], ["B-TI", "I-TI"], ["B-PS", *["I-PS"] * 3]
    examples = TaggedSentences([text], [tags])
    windows, labels = task.encode(tokenizer, examples, 16)
    # [CLS] 정말 영화 film ! [SEP]
    assert labels == [[IGNORED, 1, 3, 1, 0, IGNORED]]
    perfect = task.score(examples, windows, {"logits": [np.eye(5)[[0, 1, 3, 1, 0, 0]]]})
    assert set(perfect.values()) == {1.0}
    # White space is inside an entity that goes on after it.
    outputs = {"logits": [np.eye(5)[[0, 1, 1, 2, 0, 0]]]}
    assert task.decode(examples, windows, outputs) == [
        [*["B-PS", "I-PS", "O", "O", "B-PS"], *["I-PS"] * 6, "O", "O"]
    ]
    # "정말" is found, "영화" is not; "film", begun by "I-", is an entity for CoNLL's script alone.
    found = task.score(examples, windows, {"logits": [np.eye(5)[[0, 1, 0, 2, 0, 0]]]})
    assert (found["precision"], found["recall"]) == (1, pytest.approx(2 / 3))
    assert found["f1"] == pytest.approx(4 / 5)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert found["character_accuracy"] == pytest.approx(6 / 9)
    # O is found 3 times, of which 1 is right; B-PS 1 of 2; I-PS 5 times, 4 of 4; TI never.
    assert found["character_macro_f1"] == pytest.approx((2 / 4 + 2 / 3 + 8 / 9) / 5)
    nothing = TaggedSentences([text], [["O"] * 13])
    found = task.score(nothing, windows, {"logits": [np.eye(5)[[0] * 6]]})
    assert (found["f1"], found["macro_f1"], found["character_accuracy"]) == (0, 0, 1)


def test_tags_that_do_not_fit_are_named(tokenizer):
    for unit, sentence in (("word", ["a", "film"]), ("character", "ab")):
        task = Tagging(["O", "B-x"], unit=unit)
        with pytest.raises(InputError, match=rf"sentences\[0\] has 2 {unit}s and 1 tags"):
            task.encode(tokenizer, TaggedSentences([sentence], [["O"]]), 16)
    with pytest.raises(InputError, match=r"Tag 'S-x' is not a BIO tag .* unit='character' needs"):
        Tagging(["O", "S-x"], unit="character")


@pytest.mark.parametrize(
    ("names", "right", "found", "f1"),
    [
        # Two single words, of which one is found, not one entity of two words.
        (["O", "B-a", "I-a", "E-a", "S-a"], "S-a S-a O B-a E-a", "S-a O O B-a E-a", 4 / 5),
        (["O", "B-a", "I-a", "L-a", "U-a"], "U-a U-a O B-a L-a", "U-a O O B-a L-a", 4 / 5),
        (["O", "B-a", "I-a", "L-a", "U-a"], "U-a O O O O", "U-a I-a O O O", 2 / 3),
        (["O", "B", "I"], "B B I O O", "B O B I O", 2 / 4),
        # Without "B-" before it, an entity begins where the kind changes.
        (["O", "I-a", "I-b"], "I-a I-a I-b O I-a", "I-a I-a I-b O O", 4 / 5),
        (["NOUN", "DET", "O"], "DET NOUN NOUN O O", "DET NOUN DET O O", None),
    ],
)
def test_the_score_follows_from_the_tag_scheme(names, right, found, f1):
    task = Tagging(names)
    words = [str(i) for i in range(5)]
    window = Encoding([0] * 5, [0] * 5, offsets=[(0, 1)] * 5, words=list(range(5)), example=0)
    logits = np.eye(len(names))[[names.index(tag) for tag in found.split()]]
    scores = task.score(TaggedSentences([words], [right.split()]), [window], {"logits": [logits]})
    assert scores["word_accuracy"] == 4 / 5 or names == ["O", "B", "I"]
    assert scores.get("f1") == (f1 if f1 is None else pytest.approx(f1))
    assert task.monitor == ("word_accuracy" if f1 is None else "f1")


def test_tags_of_long_sentences_come_from_windows(tokenizer):
    words = ["film", "plot", "unbelievable", "dull"] * 8
    tags = [("B-a", "B-b", "B-c", "O")[i % 4] for i in range(32)]
    names = ["O", "B-a", "B-b", "B-c"]
    task = Tagging(names, stride=5)
    examples = TaggedSentences([words], [tags])
    windows, labels = task.encode(tokenizer, examples, 20)
    assert len(windows) > 3
    # A quarter of a window at most is in two.
    for stride, shared in ((1, 1), (5, 5), (32, 5)):
        found, _ = Tagging(names, stride).encode(tokenizer, examples, 20)
        assert list(found) == list(tokenizer.encode_words([words], 20, shared))
    logits = [np.eye(4)[np.where(np.array(row) < 0, 0, row)] for row in labels]
    # A window is wrong on its first and last word, where the one before or after is right.
    for window, rows in zip(windows, logits, strict=True):
        for word, place in (list(first_tokens(window))[i] for i in (0, -1)):
            if word not in (0, 31):
                rows[place] = np.roll(rows[place], 1)
    assert task.decode(examples, windows, {"logits": logits}) == [tags]


def test_the_baseline_is_the_commonest_tag():
    dev = TaggedSentences([["x"] * 3, ["x"]], [["O", "B-x", "B-x"], ["B-x"]])
    scores = Tagging(["O", "B-x"]).baseline(dev)
    # 4 entities are said, of which 3 are right, and 3 are due.
    due = {"f1": 6 / 7, "precision": 0.75, "recall": 1.0, "word_accuracy": 0.75}
    assert scores == pytest.approx(due)
