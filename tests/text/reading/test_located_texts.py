"""Texts of tables, lines and folders have their places."""

from tfnlp.text import read_located_texts


def test_texts_of_tables_lines_and_folders_have_their_places(tmp_path):
    (tmp_path / "table.csv").write_text("n,text\n1,a film\n")
    (tmp_path / "lines.text").write_text("one\n\n \ntwo\n\n")
    (tmp_path / "notes/old").mkdir(parents=True)
    (tmp_path / "notes/b.TXT").write_text("b\n\nc\n")
    (tmp_path / "notes/old/a.md").write_text("a\n")
    (tmp_path / "notes/picture.png").write_bytes(b"\x89")
    paths = [tmp_path / name for name in ("table.csv", "lines.text", "notes")]
    assert read_located_texts(paths) == [
        ("a film", f"{paths[0]}, line 2"),
        ("one", f"{paths[1]}, line 1"),
        ("two", f"{paths[1]}, line 4"),
        ("b\n\nc", str(paths[2] / "b.TXT")),
        ("a", str(paths[2] / "old/a.md")),
    ]
