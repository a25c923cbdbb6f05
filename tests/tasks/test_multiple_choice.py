"""Multiple choice: files of endings, and scores."""

import json

import pytest

from tfnlp.tasks import MultipleChoice, read_choices
from tfnlp.tasks.multiple_choice import Choices
from tfnlp.utils.errors import InputError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def choices(names, first=""):
    """A JSON Lines file of two questions: `names` are each ending's field and its text."""
    line = {"prompt": "a"} | {name: name for name in names} | {"label": 1}
    return first + json.dumps(line) + "\n"


def test_endings_are_in_the_order_of_their_numbers(tmp_path):
    names = [f"choice{i}" for i in range(11)]
    shuffled = [names[i] for i in (10, 3, 1, 0, 9, 2, 8, 4, 7, 5, 6)]
    path = write(tmp_path / "a.jsonl", choices(shuffled) + choices(names))
    assert read_choices(path).endings == [names, names]
    header = "\t".join(["prompt", *shuffled, "label"])
    path = write(tmp_path / "a.tsv", f"{header}\n{header.replace('label', '1 ')}\n")
    found = read_choices(path)
    assert (found.endings, found.labels) == ([names], [1])
    assert read_choices(path, choice_columns=["choice3", "choice1"]).endings == [names[3:0:-2]]
    path = write(tmp_path / "copa.jsonl", choices(["choice2", "choice1"]))
    assert read_choices(path).endings == [["choice1", "choice2"]]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["choice0", "choice2"], "number the endings one by one"),
        (["choice0", "choice1", "choice01"], "number the endings one by one"),
        (["choice0"], "the columns of endings are choice0; name"),
        (["choice0", "choice1", "choice2"], "line 1: no field 'choice2'"),
    ],
)
def test_badly_numbered_endings_are_named(names, message, tmp_path):
    first = choices(["choice0", "choice1"]) if len(names) == 3 and "choice2" in names else ""
    path = write(tmp_path / "a.jsonl", choices(names, first))
    with pytest.raises(InputError, match=message):
        read_choices(path)


def test_prompts_with_different_numbers_of_endings_are_named(tokenizer):
    # As many in all as three of each would be.
    examples = Choices(["a"] * 3, [["b"] * count for count in (2, 1, 3)], [0, 0, 0])
    with pytest.raises(InputError, match=r"endings\[1\] has 1 endings and endings\[0\] 2"):
        MultipleChoice().encode(tokenizer, examples, 16)


TWO = "prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t{}\n"


@pytest.mark.parametrize(
    ("name", "text", "columns", "message"),
    [
        ("a.tsv", TWO.format("2"), None, "line 2: label '2' is not"),
        ("a.tsv", TWO.format("²"), None, "label '²' is not"),
        ("a.tsv", "prompt\tlabel\na\t0\n", None, "columns of endings are none"),
        ("a.tsv", "prompt\tchoice0\tlabel\na\tb\t0\n", ["choice0"] * 2, "are choice0, choice0"),
        ("a.txt", "prompt,choice0,choice1,label\na,b,c,1\n", None, "has no columns"),
    ],
)
def test_bad_files_are_named(name, text, columns, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_choices(write(tmp_path / name, text), choice_columns=columns)


def test_the_baseline_is_the_commonest_choice():
    dev = Choices(["a"] * 3, [["x", "y"]] * 3, [1, 0, 1])
    assert MultipleChoice().baseline(dev) == pytest.approx({"accuracy": 2 / 3})
