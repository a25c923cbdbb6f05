"""Lines of text files."""

import io
import unicodedata

import pytest

from tfnlp.text import read_examples
from tfnlp.text.reading import lines
from tfnlp.text.reading.lines import decoded_lines
from tfnlp.text.reading.readers import read_lines
from tfnlp.text.tokenizers.byte_level_bpe import read_vocabulary
from tfnlp.text.tokenizers.tokenizer_files import read_token_lines
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json


def test_what_is_read_is_told_each_time_so_many_lines_are(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LINES_BETWEEN", 2)
    path, told = tmp_path / "x.txt", []
    path.write_text("a\n" * 5)
    assert len([*read_lines(path, told.append)]) == 5
    assert told == [4, 8]


def test_byte_order_marks_of_files_put_together_are_left_out(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_bytes("\ufefflabel\tsentence\n1\ta\n\ufeff1\tb\ufeff\n\ufeff\t".encode())
    assert [line for _, line in read_lines(path)] == [
        *("label\tsentence", "1\ta", "1\tb\ufeff"),
        "\ufeff\t",  # a character that has a tag
    ]
    path.write_bytes(path.read_bytes()[:-4])
    examples = read_examples(path)
    assert (examples.texts, examples.label_names) == (["a", "b\ufeff"], ["1"])
    for name, read, expected in (
        ("config.json", read_json, {"a": 1}),
        ("vocab.txt", read_token_lines, ['{"a": 1}']),
    ):
        (tmp_path / name).write_bytes('\ufeff{"a": 1}\n'.encode())
        assert read(tmp_path / name) == expected
    (tmp_path / "merges.txt").write_bytes("\ufeff#version: 0.2\na b\n".encode())
    assert read_vocabulary(tmp_path / "config.json", tmp_path / "merges.txt")[1] == [("a", "b")]


def test_lines_of_standard_input_are_those_of_a_file(tmp_path):
    content = "\ufeffa\u2028b\x0cc\r\n\n d\x85\n".encode()
    (tmp_path / "x").write_bytes(content)
    lines = list(decoded_lines(io.BytesIO(content), "Standard input"))
    assert lines == list(read_lines(tmp_path / "x"))
    assert lines == [(1, "a\u2028b\x0cc"), (2, ""), (3, " d\x85")]
    assert list(decoded_lines(io.BytesIO(), "Standard input")) == []
    with pytest.raises(InputError, match="Standard input, line 2: byte 2"):
        list(decoded_lines(io.BytesIO(b"a\nb\xff"), "Standard input"))


def test_decomposed_hangul_is_warned_of_once(tmp_path, caplog):
    lines = ["composed 한글", *[unicodedata.normalize("NFD", "한글")] * 2]
    (tmp_path / "x").write_text("\n".join(lines), encoding="utf-8")
    assert [line for _, line in read_lines(tmp_path / "x")] == lines  # as they are
    assert caplog.text.count("line 2: Hangul is written as single letters (NFD)") == 1
    assert "line 1:" not in caplog.text and "line 3:" not in caplog.text
    # Syllables of old Hangul have no other form (KS X 1026-1): a letter of each is no longer used.
    caplog.clear()
    (tmp_path / "x").write_text(
        "\u1103\u1172\u11f0 \u1112\u119e\u11ab \u1140\u1175", encoding="utf-8"
    )
    list(read_lines(tmp_path / "x"))
    assert not caplog.text
