"""Files of tagged sentences: words, characters, comments and errors."""

import json

import pytest

from tfnlp.tasks import read_tagged
from tfnlp.tasks.tagged_files import holds_tags
from tfnlp.tasks.tagging import tag_names
from tfnlp.utils.errors import InputError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


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
        # A no-break space is a word; an ideographic space stays in its word.
        ("5\tO\n\u00a0\tO\na\u3000\tO\n", [["5", "\u00a0", "a\u3000"]], [["O"] * 3]),
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
    said = r"line 1: tag 'DET' is not one of O, B-x, I-x; leave headers out"
    with pytest.raises(InputError, match=said):
        read_tagged(path)
    assert read_tagged(path, ["NOUN", "DET"]).tags == [["DET", "NOUN"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\tO\nfilm\n", "line 2: 'film' is no word with its tag"),
        ("the\tB-y\n", "line 1: tag 'B-y' is not one of O, B-x"),
        ("\n\n", "holds no sentence"),
        ("the\tO\nfilm\tx\tO\n", "line 2: .* in as many columns, by tabs or by spaces, as"),
        ("the\tO\nYork B-x\n", "line 2: .* is no word with its tag in as many columns"),
        ("the O\n# 0\n", "line 2: tag '0' is not one of O, B-x"),
        ("# id = 1\n1\ta\ta\tDET\t_\t_\t0\troot\t_\t_\n", "line 2: tag '_' is not"),
        (
            "## id\ttext\nthe\tO\n",
            r"line 1: tag 'text' is not .*; KLUE-NER needs unit='character'",
        ),
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
        ("\tO", "is not one character, a tab and one tag"),
        ("서\tB-QT", "'B-QT' is not one of O, B-LC"),
    ],
)
def test_bad_characters_are_named(line, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_tagged(write(tmp_path / "a.tsv", f"{line}\n"), ["O", "B-LC"], "character")


def test_custom_comments_and_a_hint_for_files_of_characters(tmp_path):
    path = write(tmp_path / "a.conll", "// a\tb\nthe\tO\n// c\nfilm\tB-x\n")
    assert read_tagged(path, comment_prefix="//").sentences == [["the", "film"]]
    path = write(path, "a\tO\n \tO\n")
    with pytest.raises(InputError, match=r"line 2: .* each line is one character, give unit='cha"):
        read_tagged(path)


ROWS = [
    {"id": 1, "tokens": ["Kim", "New York"], "ner_tags": ["B-PER", "B-LOC"]},
    {"id": 2, "tokens": ["영화"], "ner_tags": ["O"]},
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_rows_of_lists_are_read(name, tmp_path):
    path = tmp_path / name
    if name == "a.parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif name == "a.json":
        path.write_text(json.dumps(ROWS), encoding="utf-8")
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    sentences = read_tagged(path)
    assert sentences.sentences == [["Kim", "New York"], ["영화"]]
    assert sentences.tags == [["B-PER", "B-LOC"], ["O"]]


def test_rows_of_characters_are_strings_or_lists(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": "나 ", "tags": ["B-x", "O"]}\n{"words": ["a"], "labels": ["O"]}\n')
    sentences = read_tagged(path, unit="character")
    assert (sentences.sentences, sentences.tags) == (["나 ", "a"], [["B-x", "O"], ["O"]])


@pytest.mark.parametrize(
    "row, word",
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "2 words and 1 tags"),
        ({"tokens": ["a"], "ner_tags": [0]}, "number"),
        ({"text": "a", "tags": ["O"]}, "tokens"),
        ({"tokens": ["a"]}, "ner_tags"),
        ({"tokens": ["a"], "tags": ["X"]}, "'X'"),
    ],
)
def test_bad_rows_are_named(row, word, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": ["a"], "tags": ["O"]}\n' + json.dumps(row), encoding="utf-8")
    with pytest.raises(InputError, match=rf"line 2.*{word}"):
        read_tagged(path)


@pytest.mark.parametrize(
    ("text", "tagged"),
    [
        ("the\tO\nfilm\tB-x\n\nthe plot\tO\n", True),
        ("-DOCSTART- -X- O\n\n# id = 1\nthe DT O\nfilm NN B-x\n", True),
        ("the film\nis not dull\n\n정말\n", False),
        ("#the O\n", False),
        ("a film\nby him\n", False),
        ("a film\nby him\n\n", False),
        # Of these nobody can tell: a part of the tags, or all of them, may be another model's.
        ("the O\nfilm B-y\n", None),
        ("the DT\nfilm NN\n\nit PRP\n", None),
        ("the\tDT\n", None),
        ("the\nfilm\n\nis\n", None),
        ("a fine film\nhis blood group is O\n", None),
    ],
)
def test_a_file_is_tagged_a_text_or_neither_for_sure(text, tagged, tmp_path):
    path = write(tmp_path / "a.txt", text)
    if tagged is None:
        with pytest.raises(InputError, match="tagged=True or tagged=False"):
            holds_tags(path, ["O", "B-x"])
    else:
        assert holds_tags(path, ["O", "B-x"]) == tagged
