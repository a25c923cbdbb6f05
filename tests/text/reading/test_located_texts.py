"""Texts of files and folders have their places."""

from tfnlp.text import read_located_texts


def test_texts_of_lines_and_of_files_have_their_places(tmp_path):
    lines, folder = tmp_path / "lines.txt", tmp_path / "notes"
    lines.write_text("one\n\n \ntwo\n\n")
    folder.mkdir()
    (folder / "a.md").write_text("first\n\nsecond\n")
    assert read_located_texts([lines, folder]) == [
        ("one", f"{lines}, line 1"),
        ("two", f"{lines}, line 4"),
        ("first\n\nsecond", f"{folder / 'a.md'}"),
    ]
