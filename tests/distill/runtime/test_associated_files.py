"""Files inside a .tflite: damaged, cut short, and of other programs."""

import json
import pathlib
import subprocess
import sys
import zipfile

import pytest

from distill.runtime import (
    LiteRtBackend,
    QuestionAnswerer,
    TextClassifier,
    TokenTagger,
    load_runner,
)
from distill.runtime.associated_files import add_files
from tfnlp.tasks.kinds import KINDS
from tfnlp.utils.errors import InputError

ROOT = pathlib.Path(__file__).parents[3]


def run(code, *arguments):
    """A process of its own, as a crash would end that of the tests."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr[-2000:]) == (0, "")  # no notice of LiteRT either
    return json.loads(done.stdout.splitlines()[-1])


FLIP_BYTES = """
import json, pathlib, sys
from distill.runtime import TextClassifier
from tfnlp.tasks.kinds import KINDS
from tfnlp.utils.errors import InputError

path, places = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
content = path.read_bytes()
expected = TextClassifier(path).classify("a fine film")
damaged = path.with_name("damaged.tflite")
found = {"refused": [], "right": [], "wrong": []}
for place in places:
    changed = bytearray(content)
    changed[place] ^= 0xFF
    damaged.write_bytes(changed)
    try:
        answer = TextClassifier(damaged).classify("a fine film")
        found["right" if answer == expected else "wrong"].append(place)
    except InputError as e:
        assert str(damaged) in str(e) and "\\n" not in str(e)
        found["refused"].append(place)
print(json.dumps(found))
"""


def test_a_changed_byte_is_detected_or_harmless(files):
    path = files["classifier"]
    with zipfile.ZipFile(path) as archive:
        model_size = min(member.header_offset for member in archive.infolist())
        ends = archive.start_dir
    size = path.stat().st_size
    model = [*range(0, 64, 4), *range(64, model_size, model_size // 40), model_size - 1]
    places = [*model, *range(model_size, ends, 9), *range(ends, size, 2)]
    found = run(FLIP_BYTES, path, json.dumps(places))
    assert found["wrong"] == []
    assert set(model) <= set(found["refused"])
    assert all(place > model_size for place in found["right"])  # such as the dates of the zip
    assert len(found["refused"]) > 0.7 * len(places)


def test_incomplete_files_are_refused(files, tmp_path):
    content, path = files["classifier"].read_bytes(), tmp_path / "m.tflite"
    for part in (b"", b"junk" * 100, content[:-1], content[:-200], content[1:], content[:5000]):
        path.write_bytes(part)
        with pytest.raises(InputError, match=r"m\.tflite is no whole"):
            TextClassifier(path)
    with pytest.raises(InputError, match=f"{tmp_path} is no file"):
        TextClassifier(tmp_path)
    with pytest.raises(InputError, match="num_threads=0"):
        TextClassifier(files["classifier"], num_threads=0)


def test_files_of_other_programs_and_kinds_are_refused(files, tmp_path):
    content, path = files["classifier"].read_bytes(), tmp_path / "m.tflite"
    with zipfile.ZipFile(files["classifier"]) as archive:
        model = content[: min(member.header_offset for member in archive.infolist())]
    for start, name, text in (
        (model, "vocab.txt", "[PAD]"),  # as MediaPipe's own files have it
        (content, "large.txt", "0" * 100_000),  # could fill the memory
    ):
        path.write_bytes(start)
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, text)
        with pytest.raises(InputError, match="another program"):
            load_runner(path)
    settings = {"model_max_length": 9, "kind": "parser"}
    path.write_bytes(add_files(model, settings, {"vocab.txt": ""}))
    with pytest.raises(InputError, match="kind parser"):
        LiteRtBackend(path)
    for kind, runner in (("classifier", QuestionAnswerer), ("answerer", TokenTagger)):
        with pytest.raises(InputError, match=f"use distill.runtime.{KINDS[kind].runner}"):
            runner(files[kind])
