"""Pairs that are left out have the teacher's cosines, and are learned in no language."""

import numpy as np
import pytest

from distill.learning import (
    PlainTexts,
    VectorImitation,
    hold_out_pairs,
    read_translations,
    read_unlabelled,
)
from tfnlp.utils.errors import InputError

VECTORS = np.random.default_rng(0).normal(size=(240, 4))
VECTORS /= np.linalg.norm(VECTORS, axis=-1, keepdims=True)


def embed(texts):
    prompts, numbers = zip(*(text.split() for text in texts), strict=True)
    assert [*prompts] == ["q"] * (len(texts) // 2) + ["d"] * (len(texts) // 2)
    return VECTORS[[int(number) for number in numbers]]


@pytest.mark.parametrize("translated", [False, True])
def test_pairs_are_left_out_of_all_languages(translated):
    originals = [str(i) for i in range(240)]
    examples = PlainTexts(originals)
    if translated:
        examples = PlainTexts([*originals, *(f"fr{i}" for i in range(240))], originals * 2)
    train, dev = hold_out_pairs(examples, embed, ("q ", "d "))
    assert len(dev) == 12 and len(train) == 216 * (1 + translated)
    assert (train.originals is not None) == translated
    for (a, b), score in zip(dev.texts, dev.scores, strict=True):
        assert a.startswith("fr") == translated
        i, j = (int(text.removeprefix("fr")) for text in (a, b))
        assert score == pytest.approx(VECTORS[i] @ VECTORS[j])
        for number in (i, j):
            assert not {str(number), f"fr{number}"} & {*train.texts}
    if translated:  # by pairs of which both have the same translation
        shared = [f"fr{i // 2}" for i in range(240)]
        train, dev = hold_out_pairs(PlainTexts(shared, originals), embed, ("q ", "d "))
        assert not {text for pair in dev.texts for text in pair} & {*train.texts}
    with pytest.raises(InputError, match="199 texts"):
        hold_out_pairs(PlainTexts(originals[:199]), embed, ("q ", "d "))
    many = PlainTexts([str(i) for i in range(10_100)])
    assert len(hold_out_pairs(many, lambda texts: np.ones((len(texts), 1)))[1]) == 500


def test_texts_begin_with_each_prompt_once():
    examples = PlainTexts(["un", "deux"], ["one", "two"])
    begun = VectorImitation(prompts=("q ", "d ")).with_prompts(examples)
    assert begun.texts == ["q un", "q deux", "d un", "d deux"]
    assert begun.originals == ["q one", "q two", "d one", "d two"]
    assert VectorImitation(prompts=("", "")).with_prompts(examples) == examples


def test_texts_are_read_once_each(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n two\none\n")
    (tmp_path / "b.tsv").write_text("en\tko\none \thana\nthree\tset\n")
    files = [tmp_path / "a.txt", tmp_path / "b.tsv"]
    assert read_unlabelled(files, ["en", "ko"]).texts == ["one", "two", "three", "hana", "set"]
    pairs = read_translations(files[1:], ["en", "ko"])
    assert pairs.texts == ["one", "hana", "three", "set"]
    assert pairs.originals == ["one", "one", "three", "three"]
    (tmp_path / "b.tsv").write_text("en\tko\none\t \n")
    with pytest.raises(InputError, match="line 2: ko is empty"):
        read_translations(files[1:], ["en", "ko"])
    for columns in (["en"], ["en", "ko", "en"]):
        with pytest.raises(InputError, match="2 columns"):
            read_translations(files[1:], columns)
