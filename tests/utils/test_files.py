"""Files are written whole or not at all, with the rights that files have."""

import os
import stat

import pytest

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, write_text


def test_a_file_has_the_usual_rights_and_the_mask_is_left_alone(tmp_path, monkeypatch):
    usual = tmp_path / "usual"
    usual.write_text("")
    asked = []
    monkeypatch.setattr(os, "umask", asked.append)  # it is one for all threads
    for _ in range(2):  # new, and over another
        write_text(tmp_path / "sub" / "a.txt", "글")
    path = tmp_path / "sub" / "a.txt"
    assert path.read_text(encoding="utf-8") == "글" and asked == []
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_what_is_not_whole_leaves_no_trace(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(KeyError), atomic_replace(path) as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)
        raise KeyError
    message = r"a\.txt could not be written \(No space left on device\)"
    with pytest.raises(InputError, match=message), atomic_replace(path):
        raise OSError(28, "No space left on device")
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["a.txt"]
