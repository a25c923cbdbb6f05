"""Files are written whole or not at all, with the rights that files have."""

import os

import numpy as np
import pytest

from tfnlp.checkpoints.tensors import write_tensors
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, check_writable, write_text


def test_a_file_has_the_usual_rights_and_the_mask_is_left_alone(tmp_path, monkeypatch):
    usual = tmp_path / "usual"
    usual.write_text("")
    asked = []
    monkeypatch.setattr(os, "umask", asked.append)  # it is one for all threads
    for _ in range(2):  # new, and over another
        write_text(tmp_path / "sub" / "a.txt", "글")
        write_tensors(tmp_path / "sub" / "b.safetensors", {"x": np.ones(2)}, {})
    paths = sorted((tmp_path / "sub").iterdir())
    assert paths[0].read_text(encoding="utf-8") == "글" and asked == []
    assert [path.name for path in paths] == ["a.txt", "b.safetensors"]
    assert {path.stat().st_mode for path in paths} == {usual.stat().st_mode}


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


def test_a_folder_that_takes_no_files_is_told_before_work(tmp_path):
    (tmp_path / "file").write_text("")
    check_writable(tmp_path / "new" / "deep" / "a.txt")
    assert os.listdir(tmp_path) == ["file"]
    # Those of /proc take none from root either, whom permissions allow all.
    for path, reason in (
        ("/proc/self/a/b.txt", "/proc/self"),
        (tmp_path / "file" / "a", "is a file"),
    ):
        with pytest.raises(InputError, match=reason):
            check_writable(path)
