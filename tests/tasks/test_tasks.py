"""Each task: reading, encoding, loss, score, and what bad input is told."""

import dataclasses
import gzip
import json

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.checkpoints import load_model, read_task_settings
from tfnlp.models import build_model
from tfnlp.models.sizes import config_by_name
from tfnlp.tasks import (
    Answering,
    Choosing,
    Classification,
    Regression,
    Tagging,
    read_choices,
    read_questions,
    read_scored_pairs,
    read_tagged,
)
from tfnlp.tasks.multiple_choice import Choices
from tfnlp.tasks.question_answering import Questions, f1, normalise
from tfnlp.tasks.regression import ScoredExamples
from tfnlp.tasks.tagging import TaggedSentences, tag_names
from tfnlp.text import Examples, WordPieceTokenizer
from tfnlp.text.answers import window_answers
from tfnlp.text.batches import IGNORED
from tfnlp.text.tags import first_tokens
from tfnlp.text.tokenizer import Encoding
from tfnlp.training import (
    FineTuner,
    RunFolder,
    Splits,
    TrainingConfig,
    encode_batches,
    finetune,
)
from tfnlp.training.adversarial import AdversarialRegularizer
from tfnlp.utils.errors import InputError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# Reading


def test_read_tagged(tmp_path):
    path = write(tmp_path / "a.conll", "-DOCSTART- O\n\nthe\tO\nfilm\tB-x\n\n\na\tO\n")
    found = read_tagged(path)
    assert found.sentences == [["the", "film"], ["a"]]
    assert found.tags == [["O", "B-x"], ["O"]]
    assert tag_names(found) == ["O", "B-x"]


@pytest.mark.parametrize(
    ("text", "words", "tags"),
    [
        ("New York\tB-loc\n \t\n#x\tO\n", [["New York"], ["#x"]], [["B-loc"], ["O"]]),
        ("U.N. NNP I-NP I-ORG\nsays  VBZ I-VP O\n", [["U.N.", "says"]], [["I-ORG", "O"]]),
        # Comments stand before a sentence; "#" is a word where it has a tag.
        ("# sent_id = 1\n## text\n# O\n# O\n\n# I a O\n", [["#", "#"]], [["O", "O"]]),
        ("# sent_id = 1\n#\tO\n\n# a O\n#\tB-a b\n", [["#"], ["#"]], [["O"], ["B-a b"]]),
    ],
)
def test_columns_and_comments(text, words, tags, tmp_path):
    found = read_tagged(write(tmp_path / "a.conll", text))
    assert (found.sentences, found.tags) == (words, tags)


def test_other_tags_are_given(tmp_path):
    path = write(tmp_path / "a.conll", "the\tDET\nfilm\tNOUN\n")
    said = r"line 1: tag 'DET' is not of BIO.* give all of them as `labels`"
    with pytest.raises(InputError, match=said):
        read_tagged(path)
    assert read_tagged(path, ["NOUN", "DET"]).tags == [["DET", "NOUN"]]


@pytest.mark.parametrize("name", ["train", "dev", "test"])
def test_every_real_tag_is_read(name, data_dir):
    found = read_tagged(data_dir / "wnut17" / f"{name}.conll")
    words = sum(len(tags) for tags in found.tags)
    counts = {"train": (3394, 62730), "dev": (1009, 15733), "test": (1287, 23394)}
    assert (len(found), words) == counts[name]
    assert len(tag_names(found)) == 13


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\tO\nfilm\n", "line 2: 'film' has a word but no tag"),
        ("the\tB-y\n", "line 1: tag 'B-y' is not one of the tags"),
        ("\n\n", "holds no sentence"),
        ("the\tO\n\tO\n", "line 2: .* has a tag but no word"),
        ("the\tO\nfilm\tx\tO\n", "line 2: 3 columns separated by tabs, but line 1 has 2"),
        ("the\tO\nNew York B-x\n", "line 2: 3 columns separated by spaces, but line 1 has 2"),
        ("# id\nthe O\nfilm O B-x\n", "line 3: 3 columns separated by spaces, but line 2 has 2"),
        ("the\tO\nYork B-x\n", "line 2: 2 columns separated by spaces, but .* 2 .* tabs"),
        ("the O\n# 0\n", "line 2: tag '0' is not one of the tags"),
        ("token\ttag\nthe\tO\n", "line 1: tag 'tag' is not one of the tags"),
        ("# id = 1\n1\ta\ta\tDET\t_\t_\t0\troot\t_\t_\n", "line 2: tag '_' is not"),
        ('{"tokens": ["a"], "tags": ["O"]}\n', "line 1: tag '.*' is not one of the tags"),
        ("<html>\n", "line 1: '<html>' has a word but no tag"),
        ("## id\ttext\nthe\tO\n", "line 1: tag 'text' is not"),
    ],
)
def test_bad_tags_are_named(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_tagged(write(tmp_path / "a.conll", text), ["O", "B-x"])


# As KLUE-NER has it: comments with tabs, a character on each line, spaces among them.
KLUE_NER = (
    "## 토큰, 레이블 구분자 : \\t\n## 컬럼명 : CHAR\tNE_TAG\n"
    "## klue-ner-v1_train_00000-nsmc\t<김모:PS> #1\n김\tB-PS\n모\tI-PS\n \tO\n#\tO\n1\tO\n\n"
    "## klue-ner-v1_train_00001-nsmc\t<두 시:TI>\n두\tB-TI\n \tI-TI\n시\tI-TI\n\t\n"
)


def test_read_tagged_characters(tmp_path):
    path = write(tmp_path / "klue-ner.tsv", KLUE_NER)
    found = read_tagged(path, unit="character")
    assert found.sentences == found.texts == ["김모 #1", "두 시"]
    assert found.tags == [["B-PS", "I-PS", "O", "O", "O"], ["B-TI", "I-TI", "I-TI"]]
    with pytest.raises(InputError, match=r"line 1: a file of KLUE-NER has .* unit='character'"):
        read_tagged(path)
    with pytest.raises(InputError, match="unit=letter is unknown; use one of word, character"):
        read_tagged(path, unit="letter")
    path = write(path, KLUE_NER.replace("##", "%%"))
    with pytest.raises(InputError, match=r"line 1: '%% 토큰.* is not one character, a tab"):
        read_tagged(path, unit="character")
    assert read_tagged(path, unit="character", comment_prefix="%%") == found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("서울\tB-LC", "line 1: .* is not one character, a tab and one tag"),
        ("서 B-LC", "is not one character, a tab and one tag"),
        ("서\tO\tB-LC", "is not one character, a tab and one tag"),
        ("서\t", "is not one character, a tab and one tag"),
        ("\tO", "is not one character, a tab and one tag"),
        (
            "서\tB-QT",
            "'B-QT' is not one of .*, which are those of `labels` or, without it, of",
        ),
    ],
)
def test_bad_characters_are_named(line, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_tagged(write(tmp_path / "a.tsv", f"{line}\n"), ["O", "B-LC"], "character")


def test_words_with_comments_of_ones_own_and_characters_without_a_word_for_it(tmp_path):
    path = write(tmp_path / "a.conll", "// a\tb\nthe\tO\n// c\nfilm\tB-x\n")
    assert read_tagged(path, comment_prefix="//").sentences == [["the", "film"]]
    path = write(path, "a\tO\n \tO\n")
    with pytest.raises(InputError, match=r"line 2: .* give unit='character' if each line is one"):
        read_tagged(path)


def squad(context, answers, **fields):
    qa = {"id": "1", "question": "who ?", "answers": answers} | fields
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": [qa]}]}]})


def test_read_questions(tmp_path):
    answers = [{"answer_start": 2, "text": "film"}]
    path = write(tmp_path / "a.json", squad("a film", answers))
    assert read_questions(path).answers == [[(2, "film")]]
    path = write(tmp_path / "b.json", squad("a film", answers, is_impossible=True))
    assert read_questions(path).answers == [[]]
    path = write(tmp_path / "c.json", squad("a plot", answers))
    with pytest.raises(InputError, match="answer 'film' of question 1 is not in its context"):
        read_questions(path)
    for text in (
        "[]",
        '{"data": [{}]}',
        '{"data": [{"paragraphs": [{"context": "", "qas": [5]}]}]}',
    ):
        with pytest.raises(InputError, match=r"in SQuAD's JSON format|JSON object"):
            read_questions(write(tmp_path / "d.json", text))
    with pytest.raises(InputError, match=r"none\.json does not exist"):
        read_questions(tmp_path / "none.json")


def test_questions_of_klue(tmp_path):
    """KLUE-MRC calls the id `guid` and has fields of its own."""
    answer = {"text": "1998년", "answer_start": 4}
    impossible = {"is_impossible": True, "plausible_answers": [answer], "question_type": 3}
    qas = [
        {"question": "언제?", "answers": [answer, answer], "guid": "klue-mrc-v1_dev_00000"},
        {"question": "왜?", "answers": [], "guid": "klue-mrc-v1_dev_00001"} | impossible,
    ]
    article = {"title": "가", "news_category": None, "source": "a"}
    article["paragraphs"] = [{"context": "그는 (1998년", "qas": qas}]
    path = write(tmp_path / "a.json", json.dumps({"version": "v1", "data": [article]}))
    found = read_questions(path)
    assert found.ids == ["klue-mrc-v1_dev_00000", "klue-mrc-v1_dev_00001"]
    assert found.answers == [[(4, "1998년")] * 2, []]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"answers": [{"answer_start": -4, "text": "fil"}]}, "is not in its context at .* -4"),
        ({"answers": [{"answer_start": "2", "text": "film"}]}, "'answer_start' that is a number"),
        ({"answers": None}, "question 1 has no 'answers' that is a list"),
        ({"question": 5}, "question 1 has no 'question' that is a text"),
        ({"id": None}, "a question has no 'id'"),
    ],
)
def test_bad_questions_are_named(fields, message, tmp_path):
    path = write(tmp_path / "a.json", squad("a film", []))
    assert len(read_questions(path)) == 1
    path = write(path, squad("a film", **{"answers": []} | fields))
    with pytest.raises(InputError, match=message):
        read_questions(path)


def test_ids_of_questions_are_their_own(tmp_path):
    value = json.loads(squad("a film", [{"answer_start": 2, "text": "film"}]))
    value["data"] *= 2
    path = write(tmp_path / "a.json", json.dumps(value))
    with pytest.raises(InputError, match="two questions have the id '1'"):
        read_questions(path)


def test_gzipped_questions_with_halves_of_surrogate_pairs(tmp_path):
    text = squad("\ud83d film", [{"answer_start": 2, "text": "film"}])
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    found = read_questions(path)
    assert found.contexts == ["\ufffd film"] and found.answers == [[(2, "film")]]


def test_questions_without_answers_need_null_answers(tokenizer, tmp_path):
    answer = {"answer_start": 2, "text": "film"}
    none = [
        squad("a film", [answer], is_impossible=True),
        squad("a film", []),
        squad("a film", [{"answer_start": -1, "text": ""}]),
    ]
    for i, text in enumerate(none):
        path = write(tmp_path / f"{i}.json", text)
        with pytest.raises(InputError, match=rf"{i}\.json: 1 of 1 questions.* null_answers=True"):
            read_questions(path, null_answers=False)
        found = read_questions(path)
        assert found.answers == [[]]
        with pytest.raises(InputError, match="1 of 1 questions, 1 the first, have no answer"):
            Answering().encode(tokenizer, found, 32)
        _, labels = Answering(null_answers=True).encode(tokenizer, found, 32)
        assert labels.tolist() == [[0, 0]]
    path = write(tmp_path / "a.json", squad("a film", [answer]))
    assert read_questions(path, null_answers=False).answers == [[(2, "film")]]


def test_read_scores_and_choices(tmp_path):
    path = write(tmp_path / "a.tsv", "sentence1\tsentence2\tscore\na\tb\t2.5\n")
    assert read_scored_pairs(path).labels == [2.5]
    path = write(tmp_path / "b.tsv", "sentence1\tsentence2\tscore\na\tb\tx\n")
    with pytest.raises(InputError, match="line 2: score 'x' is not a number"):
        read_scored_pairs(path)
    path = write(tmp_path / "c.tsv", "prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t1\n")
    found = read_choices(path)
    assert (found.prompts, found.endings, found.labels) == (["a"], [["b", "c"]], [1])
    path = write(tmp_path / "d.tsv", "prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t2\n")
    with pytest.raises(InputError, match="line 2: label '2' is not the number of an ending"):
        read_choices(path)
    path = write(tmp_path / "e.tsv", "prompt\tlabel\na\t0\n")
    with pytest.raises(InputError, match=r"0 columns of endings.* `choice_columns`"):
        read_choices(path)


@pytest.mark.parametrize("text", ["nan", "inf", "1,5", "1_5", ""])
def test_scores_that_are_no_numbers_are_named(text, tmp_path):
    path = write(tmp_path / "a.tsv", f"sentence1\tsentence2\tscore\na\tb\t{text}\n")
    with pytest.raises(InputError, match=f"line 2: score '{text}' is not a number"):
        read_scored_pairs(path)


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
        (["choice2", "choice3"], "number the endings one by one"),
        (["choice0", "ending1"], "number the endings one by one"),
        (["choice0"], "1 columns of endings"),
        (["choice0", "choice1", "choice2"], "line 1: no field 'choice2'"),
    ],
)
def test_badly_numbered_endings_are_named(names, message, tmp_path):
    first = choices(["choice0", "choice1"]) if len(names) == 3 and "choice2" in names else ""
    path = write(tmp_path / "a.jsonl", choices(names, first))
    with pytest.raises(InputError, match=message):
        read_choices(path)


def test_beginnings_with_other_numbers_of_endings_are_named(tokenizer):
    # As many in all as three of each would be.
    examples = Choices(["a"] * 3, [["b"] * count for count in (2, 1, 3)], [0, 0, 0])
    with pytest.raises(InputError, match=r"endings\[1\] has 1 endings and endings\[0\] 2"):
        Choosing().encode(tokenizer, examples, 16)


def test_endings_given_twice_and_odd_digits_are_named(tmp_path):
    path = write(tmp_path / "a.tsv", "prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t²\n")
    with pytest.raises(InputError, match="label '²' is not the number of an ending"):
        read_choices(path)
    with pytest.raises(InputError, match="choice_columns=choice0,choice0 names a column twice"):
        read_choices(path, choice_columns=["choice0", "choice0"])
    with pytest.raises(InputError, match="has no columns"):
        read_choices(write(tmp_path / "a.txt", "prompt,choice0,choice1,label\na,b,c,1\n"))


# Scores


def test_classification_scores():
    task = Classification(["no", "yes"], "matthews")
    examples = Examples(["a"] * 6, labels=[0, 0, 1, 1, 1, 1])
    logits = np.eye(2)[[0, 1, 1, 1, 1, 0]]
    found = task.score(examples, None, {"logits": list(logits)})
    assert found["accuracy"] == pytest.approx(4 / 6)
    # (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))
    assert found["matthews"] == pytest.approx((3 * 1 - 1 * 1) / np.sqrt(4 * 4 * 2 * 2))
    assert found["macro_f1"] == pytest.approx((0.5 + 0.75) / 2)
    assert "f1" not in found
    for label, f1_of_it in (("no", 0.5), ("yes", 0.75)):
        task = Classification(["no ", "yes"], "f1", positive_label=label)
        assert task.score(examples, None, {"logits": list(logits)})["f1"] == f1_of_it
    with pytest.raises(InputError, match="=f1 is of one class; name it as `positive_label`, or"):
        Classification(["no", "yes"], "f1")
    with pytest.raises(InputError, match=r"positive_label=1 is not one of the labels \(no, yes\)"):
        Classification(["no", "yes"], positive_label="1")
    with pytest.raises(
        InputError, match=r"monitor=F1 is unknown .did you mean f1.*; use one of accuracy, mat"
    ):
        Classification(["no", "yes"], "F1")


def test_the_loss_of_numbers_in_a_column_is_that_of_a_row():
    logits = tf.constant([[1.0], [2.0], [4.0]])
    labels = np.array([1.0, 0.0, 1.0], "float32")
    for given in (labels, labels[:, None]):
        assert float(Regression().loss(given, {"logits": logits})) == pytest.approx(13 / 3)


def test_regression_scores():
    examples = ScoredExamples(["a"] * 4, None, [1.0, 2.0, 3.0, 10.0])
    found = Regression().score(examples, None, {"logits": list(np.array([[1], [2], [3], [4.0]]))})
    assert found["spearman"] == pytest.approx(1)
    assert found["pearson"] == pytest.approx(np.corrcoef([1, 2, 3, 4], [1, 2, 3, 10])[0, 1])
    assert found["mean_squared_error"] == pytest.approx(9)
    constant = Regression().score(examples, None, {"logits": [np.ones(1)] * 4})
    assert constant["pearson"] == constant["spearman"] == 0
    examples.labels = [2.0] * 4
    constant = Regression().score(examples, None, {"logits": list(np.array([[1], [2], [3], [4]]))})
    assert constant["pearson"] == constant["spearman"] == 0


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
    assert task.predict([text], windows, outputs) == [
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
        with pytest.raises(InputError, match=r"has the tag 'B-y', which is not .* \(O, B-x\)"):
            task.encode(tokenizer, TaggedSentences([sentence], [["O", "B-y"]]), 16)
    with pytest.raises(InputError, match=r"Tag 'S-x' is not of BIO .* unit='character' needs"):
        Tagging(["O", "S-x"], unit="character")


@pytest.mark.parametrize(
    ("names", "right", "found", "f1"),
    [
        # Two single words, of which one is found, not one entity of two words.
        (["O", "B-a", "I-a", "E-a", "S-a"], "S-a S-a O B-a E-a", "S-a O O B-a E-a", 4 / 5),
        (["O", "B-a", "I-a", "L-a", "U-a"], "U-a U-a O B-a L-a", "U-a O O B-a L-a", 4 / 5),
        (["O", "B", "I"], "B B I O O", "B O B I O", 2 / 4),
        # Without "B-" before it, an entity begins where the kind changes.
        (["O", "I-a", "I-b"], "I-a I-a I-b O I-a", "I-a I-a I-b O O", 4 / 5),
        (["NOUN", "DET", "O"], "DET NOUN NOUN O O", "DET NOUN DET O O", None),
    ],
)
def test_what_is_scored_follows_from_the_tags(names, right, found, f1):
    task = Tagging(names)
    words = [str(i) for i in range(5)]
    window = Encoding([0] * 5, [0] * 5, offsets=[(0, 1)] * 5, words=list(range(5)), example=0)
    logits = np.eye(len(names))[[names.index(tag) for tag in found.split()]]
    scores = task.score(TaggedSentences([words], [right.split()]), [window], {"logits": [logits]})
    assert scores["word_accuracy"] == 4 / 5 or names == ["O", "B", "I"]
    assert scores.get("f1") == (f1 if f1 is None else pytest.approx(f1))
    assert task.monitor == ("word_accuracy" if f1 is None else "f1")


def test_labels_of_one_class_are_refused():
    for make in (Classification, Tagging):
        with pytest.raises(InputError, match="at least 2 labels to tell apart; given: O"):
            make(["O"])
        with pytest.raises(InputError, match="label 'O' is given twice"):
            make(["O", "B-x", "O"])
    with pytest.raises(InputError, match="given: none"):
        Classification(None)


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
    assert task.predict(examples.sentences, windows, {"logits": logits}) == [tags]


def test_answer_scores():
    # Pairs that SQuAD's official script was given, and what it says of them.
    assert normalise("The  Quick, brown fox!") == "quick brown fox"
    assert f1("the brown fox", "a quick brown fox") == pytest.approx(0.8)
    assert f1("", "") == 1 and f1("fox", "") == 0
    # The best of several right answers counts; no answer is right where there is none.
    rights = [[(0, "a dog"), (0, "red fox"), (0, "cat")], [(0, "fox"), (0, "dog")], []]
    examples = Questions(["1", "2", "3"], [""] * 3, [""] * 3, rights)
    scores = Answering().score_answers(examples, ["the red fox", "quick dog", ""])
    assert scores == {"f1": pytest.approx((1 + 2 / 3 + 1) / 3), "exact_match": 2 / 3}


@pytest.mark.parametrize("family", ["wordpiece", "bpe", "unigram"])
def test_answers_come_back_from_their_tokens(family, data_dir, minilm):
    from tfnlp.text import train_byte_level_bpe, train_unigram

    examples = read_questions(data_dir / "xquad_en" / "dev.json")
    texts = examples.contexts[::5]
    tokenizer = {
        "wordpiece": lambda: WordPieceTokenizer.from_folder(minilm),
        "bpe": lambda: train_byte_level_bpe(texts, 2000),
        "unigram": lambda: train_unigram(texts, 2000, "deberta-v2"),
    }[family]()
    task = Answering(stride=64)
    windows, labels = task.encode(tokenizer, examples, 192)
    assert len(windows) > len(examples)
    found = [set() for _ in examples.questions]
    for window, (start, end) in zip(windows, labels, strict=True):
        if window.sources[start] == 1:
            context = examples.contexts[window.example]
            found[window.example].add(context[window.offsets[start][0] : window.offsets[end][1]])
    right = [answers[0][1] for answers in examples.answers]
    exact = [
        any(normalise(text) == normalise(r) for text in texts)
        for texts, r in zip(found, right, strict=True)
    ]
    # Some answers begin or end inside a word; those come back with the whole of it.
    assert np.mean(exact) > 0.97
    outputs = {
        name: [
            9.0 * np.eye(len(w.token_ids))[places[column]]
            for w, places in zip(windows, labels, strict=True)
        ]
        for column, name in enumerate(("start_logits", "end_logits"))
    }
    assert task.score(examples, windows, outputs)["exact_match"] > 0.97
    for context, answers in zip(
        examples.contexts, task.n_best(examples, windows, outputs), strict=True
    ):
        for answer in answers:
            assert answer.text == context[answer.start : answer.end] == answer.text.strip() != ""


def test_null_answers_and_n_best(tokenizer):
    examples = Questions(
        ["1", "2"],
        ["film ?"] * 2,
        ["a fine film", "a dull plot"],
        [[(2, "fine"), (7, "film")], []],
    )
    task = Answering(null_answers=True)
    windows, labels = task.encode(tokenizer, examples, 32)
    # [CLS] film [UNK] [SEP] a fine film [SEP]
    assert labels.tolist() == [[5, 5], [0, 0]]
    start = [np.zeros(8), np.zeros(8)]
    start[0][5], start[1][0] = 3.0, 2.0
    outputs = {"start_logits": start, "end_logits": start}
    lists = task.n_best(examples, windows, outputs, 3)
    assert (lists[0][0].text, lists[0][0].score) == ("fine", 6.0)
    assert (lists[0][0].start, lists[0][0].end) == (2, 6)
    assert lists[1][0].text == "" and lists[1][0].score == 4.0
    assert task.score(examples, windows, outputs) == {"f1": 1.0, "exact_match": 1.0}
    assert len(window_answers(windows[0], start[0], start[0], "a fine film", count=2)) <= 4


def test_one_long_question_is_cut_and_counted(tokenizer, caplog):
    examples = Questions(
        ["1", "2"], ["film " * 200, "film ?"], ["a fine film"] * 2, [[(2, "fine")], [(2, "fine")]]
    )
    with caplog.at_level("WARNING", "absl"):
        windows, labels = Answering().encode(tokenizer, examples, 32)
    assert "1 of 2 questions are longer than is read" in caplog.text
    # [CLS] film x 14 [SEP] a fine film [SEP], and [CLS] film [UNK] [SEP] a fine film [SEP]
    assert [len(w.token_ids) for w in windows] == [20, 8] and [w.cut for w in windows] == [1, 0]
    assert labels.tolist() == [[17, 17], [5, 5]]
    logits = [np.zeros(20), np.zeros(8)]
    for task in (Answering(), Answering(null_answers=True)):
        outputs = {"start_logits": logits, "end_logits": logits}
        found = task.n_best(examples, windows, outputs)
        assert [{answer.cut for answer in answers} for answers in found] == [{True}, {False}]
    windows, _ = Answering(max_question_length=3).encode(tokenizer, examples, 32)
    assert [len(w.token_ids) for w in windows] == [9, 8]
    # Of a question 64 tokens are read where there is room.
    windows, _ = Answering().encode(tokenizer, examples, 384)
    assert [len(w.token_ids) for w in windows] == [70, 8]


# Training


def data_for(task_name, ends=("film",)):
    """A task and examples for it, whose texts end in one of `ends`, in turn."""
    words = ["fine", "dull"]
    rng = np.random.default_rng(0)
    picks = rng.integers(0, 2, 48)
    texts = [f"the {words[p]} {ends[i % len(ends)]}" for i, p in enumerate(picks)]
    if task_name == "classifier":
        return Classification(["0", "1"]), Examples(texts, labels=picks.tolist())
    if task_name == "regression":
        return Regression(), ScoredExamples(texts, texts, [float(p) for p in picks])
    if task_name == "tagger":
        sentences = [text.split() for text in texts]
        tags = [["B-x" if word == "dull" else "O" for word in words] for words in sentences]
        return Tagging(["O", "B-x"]), TaggedSentences(sentences, tags)
    if task_name == "characters":
        inside = ["B-x", "I-x", "I-x", "I-x"]
        tags = [["O"] * len(text) for text in texts]
        for row, p in zip(tags, picks, strict=True):
            row[4:8] = inside if p else row[4:8]
        return Tagging(["O", "B-x", "I-x"], unit="character"), TaggedSentences(texts, tags)
    if task_name == "answerer":
        contexts = [f"the fine {ends[i % len(ends)]} is dull" for i in range(48)]
        answers = [
            [(4, "fine") if p else (context.index("dull"), "dull")]
            for p, context in zip(picks, contexts, strict=True)
        ]
        questions = [("a ?" if p else "is ?") for p in picks]
        ids = [str(i) for i in range(48)]
        return Answering(), Questions(ids, questions, contexts, answers)
    endings = [["dull", "fine"] if p else ["fine", "dull"] for p in picks]
    return Choosing(), Choices(texts, endings, picks.tolist())


TASKS = ("classifier", "regression", "tagger", "answerer", "chooser")


@pytest.mark.parametrize(
    ("name", "adversarial"),
    [*((name, False) for name in TASKS), ("characters", True)],
)
def test_every_task_is_learned(name, adversarial, tiny_config, tokenizer, tmp_path):
    """Scored on texts that are not among those it is trained on."""
    task, train = data_for(name, ends=("film", "plot", "film !", "x plot"))
    _, dev = data_for(name, ends=("plot !", "x film"))
    model = build_model(tiny_config, task.head, task.num_classes)
    regularizer = AdversarialRegularizer(model, task.outputs, 0.5) if adversarial else None
    config = TrainingConfig(epochs=8, batch_size=8, learning_rate=2e-3)
    run = RunFolder(tmp_path / "run", {})
    data = Splits(train, dev, 32)
    figures = finetune(
        task, model, tokenizer, data, config=config, run=run, regularizer=regularizer
    )
    assert figures[f"dev_{task.monitor}"] > 0.95
    assert "dev_only_answer" not in figures
    check_dev_loss_and_baseline(task, tokenizer, train, dev, run, figures)
    assert (run.path / "curves.png").exists() and (run.best / "config.json").exists()
    unit = {"tagger": "word", "characters": "character"}.get(name)
    assert read_task_settings(run.best).get("unit") == unit


def check_dev_loss_and_baseline(task, tokenizer, train, dev, run, figures):
    """The logged loss on dev is that of Keras' `evaluate`; the figures have the baseline's."""
    best = load_model(run.best, task.head, task.num_classes)
    trained = FineTuner(best, task)
    trained.compile()
    batches = encode_batches(task, tokenizer, dev, 32, 8)
    loss = trained.evaluate(batches.dataset(), verbose=0)
    score = f"val_{task.monitor}"
    kept = max(run.metrics(), key=lambda epoch: epoch[score])
    assert kept["val_loss"] == pytest.approx(loss, rel=1e-3, abs=1e-6)
    assert run.metrics()[-1]["val_loss"] < run.metrics()[0]["val_loss"]
    baselines = {k: v for k, v in figures.items() if "_baseline_" in k}
    if isinstance(task, Answering):
        assert not baselines
        return
    expected = task.baseline(train, dev)
    assert baselines == {f"dev_baseline_{name}": value for name, value in expected.items()}
    assert expected.keys() == {
        key.removeprefix("val_") for key in kept if f"dev_{key[4:]}" in figures
    }


def test_baselines_say_the_commonest_training_label_or_the_mean():
    labels = ["a", "b", "c"]
    train = Examples(["x"] * 5, None, [2, 0, 2, 1, 2])
    dev = Examples(["x"] * 4, None, [0, 2, 2, 1])
    scores = Classification(labels, positive_label="c").baseline(train, dev)
    assert scores == pytest.approx(
        {"accuracy": 0.5, "matthews": 0.0, "macro_f1": 2 / 9, "f1": 2 / 3}
    )
    train, dev = (ScoredExamples(["x"] * 2, None, x) for x in ([1.0, 4.0], [2.0, 4.0]))
    scores = Regression().baseline(train, dev)
    assert scores == {"pearson": 0.0, "spearman": 0.0, "mean_squared_error": 1.25}
    train = TaggedSentences([["x"] * 3, ["x"]], [["B-x", "O", "B-x"], ["B-x"]])
    dev = TaggedSentences([["x"] * 4], [["O", "B-x", "O", "B-x"]])
    scores = Tagging(["O", "B-x"]).baseline(train, dev)
    # 4 entities are said, of which 2 are right, and 2 are due.
    assert scores == pytest.approx(
        {"f1": 2 / 3, "precision": 0.5, "recall": 1.0, "word_accuracy": 0.5}
    )
    endings = [["x", "y"]] * 3
    train, dev = (Choices(["a"] * 3, endings, x) for x in ([1, 1, 0], [1, 0, 0]))
    assert Choosing().baseline(train, dev) == pytest.approx({"accuracy": 1 / 3})


def test_a_fresh_regression_begins_at_the_training_mean(tiny_config):
    examples = ScoredExamples(["x"] * 3, None, [4.0, 5.0, 3.0])
    model = build_model(tiny_config, "classifier", 1)
    bias = model.get_layer("classifier").bias
    Regression().start(model, examples)
    np.testing.assert_array_equal(bias, [4.0])
    # A head that has learned stays as it is.
    Regression().start(model, ScoredExamples(["x"], None, [9.0]))
    np.testing.assert_array_equal(bias, [4.0])
    gpt = config_by_name("gpt", num_layers=1, hidden_dim=8, num_heads=2, vocabulary_size=20)
    Regression().start(build_model(gpt, "classifier", 1), examples)  # has no bias


@pytest.mark.parametrize("name", [name for name in TASKS if name != "answerer"])
def test_losses_leave_padding_out(name, tiny_config, tokenizer):
    """The loss of a batch is the mean of its parts, however they are padded and weighted."""
    task, data = data_for(name, ends=("film", "unbelievable plot !", "plot"))
    model = build_model(tiny_config, task.head, task.num_classes)
    batches = encode_batches(task, tokenizer, data, 32, 4)
    inputs, labels = batches.batch(np.arange(4))
    assert 0.1 < np.mean(inputs["padding_mask"] == 0) < 0.5
    outputs = model(inputs)
    parts, counts = [], []
    for i in range(4):
        x, y = batches.batch(np.array([i]))
        parts.append(float(task.loss(y, model(x))))
        # A mean over tokens, where they have labels, and over texts elsewhere.
        counts.append(np.sum(y != IGNORED) if name == "tagger" else 1)
    assert np.std(parts) > 0.01
    for weights in (None, np.array([0.5, 0, 2, 1], "float32")):
        expected = np.average(parts, weights=counts if weights is None else counts * weights)
        assert float(task.loss(labels, outputs, weights)) == pytest.approx(expected, abs=1e-5)


def test_the_loss_of_answers_is_over_all_tokens():
    """Padding too, as in BERT's own code and in `transformers`."""
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=(2, 3, 7)).astype("float32")
    labels = np.array([[1, 2], [0, 0], [6, 3]])
    outputs = {"start_logits": start, "end_logits": end}
    rows = np.arange(3)
    probabilities = [np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (start, end)]
    losses = np.mean([-np.log(p[rows, labels[:, i]]) for i, p in enumerate(probabilities)], axis=0)
    assert float(Answering().loss(labels, outputs)) == pytest.approx(losses.mean(), rel=1e-5)
    weights = np.array([0.5, 0, 2], "float32")
    expected = np.average(losses, weights=weights)
    assert float(Answering().loss(labels, outputs, weights)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("num_classes", [1, 2])
def test_adversarial_loss_grows_with_the_step(num_classes, tiny_config, random_inputs):
    inputs = random_inputs(4, 9, tiny_config.vocabulary_size)
    config = dataclasses.replace(tiny_config, dropout=0.0, attention_dropout=0.0)
    model = build_model(config, "classifier", num_classes)
    outputs = {"logits": model(inputs)["logits"]}
    losses = []
    for start, step in ((0.0, 0.0), (1e-2, 0.0), (1e-2, 0.5), (1e-2, 2.0)):
        regularizer = AdversarialRegularizer(model, ("logits",), 1.0, step, start, seed=1)
        losses.append(float(regularizer(inputs, outputs)))
    assert losses[0] == pytest.approx(0, abs=1e-10)
    assert losses[0] < losses[1] < losses[2] < losses[3]


def test_adversarial_loss_is_the_symmetric_divergence(tiny_config):
    model = build_model(tiny_config, "classifier", 3)
    regularizer = AdversarialRegularizer(model, ("logits",), 1.0)
    a, b = (tf.Variable(np.random.default_rng(n).normal(size=(5, 3))) for n in range(2))
    with tf.GradientTape() as tape:
        found = regularizer._divergence({"logits": a}, {"logits": b}, {})
    p, q = (tf.nn.softmax(x).numpy() for x in (a, b))
    assert float(found) == pytest.approx(np.mean(np.sum((p - q) * np.log(p / q), -1)), rel=1e-5)
    # Cross-entropies towards the other's probabilities: a pulls at b as b pulls at a.
    by_a, by_b = tape.gradient(found, [a, b])
    np.testing.assert_allclose(by_a, (p - q) / 5, atol=1e-6)
    np.testing.assert_allclose(by_b, (q - p) / 5, atol=1e-6)


def test_adversarial_losses_are_weighted_by_example(tiny_config, random_inputs):
    config = dataclasses.replace(tiny_config, dropout=0.0, attention_dropout=0.0)
    task, model = Tagging(["O", "B-x"]), build_model(config, "tagger", 2)
    inputs = random_inputs(3, 7, tiny_config.vocabulary_size)
    labels = np.where(inputs["padding_mask"], 1, IGNORED)

    def loss(rows, weights=None):
        x = {key: value[rows] for key, value in inputs.items()}
        regularizer = AdversarialRegularizer(model, ("logits",), 1.0, 0.5, 0.1, seed=1)
        tuner = FineTuner(model, task, regularizer)
        return float(tuner.compute_loss(x, labels[rows], tuner(x), weights))

    # The random start of the first two is the same in a batch of two and of three.
    whole, part = loss([0, 1, 2], np.array([1.0, 1.0, 0.0])), loss([0, 1])
    assert whole == pytest.approx(part, rel=1e-5)
    assert loss([0, 1], np.array([3.0, 3.0])) == pytest.approx(part, rel=1e-5)
    assert loss([0, 1, 2]) != pytest.approx(part, rel=1e-3)


def test_logits_of_one_class_are_refused(tiny_config, random_inputs):
    """Its loss would be 0 from the first step on."""
    model = build_model(tiny_config, "classifier", 1)
    outputs = model(random_inputs(2, 5, tiny_config.vocabulary_size))
    with pytest.raises(ValueError, match=r"logits of shape \(2, 1\) have one class"):
        Classification(["a", "b"]).loss(np.zeros(2, "int32"), outputs)


def test_finetuner_saves_nothing_of_its_own(tiny_config):
    task, _ = data_for("tagger")
    model = build_model(tiny_config, "tagger", 2)
    assert len(FineTuner(model, task).weights) == len(model.weights)
