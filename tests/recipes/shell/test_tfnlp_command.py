"""`tfnlp NAME` runs the recipe of that name."""

import pathlib
import subprocess
import sys

import pytest

import tfnlp
from recipes.shell import tfnlp_command

RECIPES = pathlib.Path(tfnlp_command.__file__).parents[1]


def test_every_recipe_has_a_purpose_and_a_line():
    programs = {path.stem for path in RECIPES.glob("*.py")} - {"__init__"}
    assert sorted(tfnlp_command.NAMES) == sorted(programs)
    lines = tfnlp_command.overview().splitlines()
    (line,) = (line for line in lines if line.startswith("  distill_tagger "))
    assert line.endswith("  Distils a fine-tuned tagger into a smaller one")
    assert max(map(len, lines)) < 120


@pytest.mark.parametrize(
    "arguments, status, text",
    [
        (["predict", "--modl=x"], 2, "There is no flag --modl; did you mean --model?"),
        (["predict", "--help"], 0, "--question_column    Column of the question"),
        (["finetun_tagger"], 2, "there is no recipe finetun_tagger; did you mean finetune_tagger"),
        (["--words", "frontier"], 0, "--models= --output_dir= --pair_column= --positive_label="),
        ([], 0, "Put it on a phone:"),
        (["help"], 0, "Put it on a phone:"),
        (["--version"], 0, f"tfnlp {tfnlp.__version__}"),
    ],
)
def test_the_command(arguments, status, text):
    command = [sys.executable, "-m", "recipes.shell.tfnlp_command", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == status
    assert text in result.stdout + result.stderr


def test_what_keeps_all_recipes_from_running_is_told(tmp_path):
    def run(code):
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
        )

    (tmp_path / "distill.py").write_text("")
    done = run("import recipes.predict")
    assert done.returncode == 2 and f"{tmp_path}/distill.py hides a package" in done.stderr
    (tmp_path / "distill.py").unlink()
    for name in ("absl", "tensorflow"):
        (tmp_path / "absent.py").write_text(
            "import importlib.util as x\nfind = x.find_spec\n"
            f"x.find_spec = lambda name: None if name == {name!r} else find(name)\n"
        )
        done = run("import absent, recipes.predict")
        assert done.returncode == 2 and f"{name} is not installed" in done.stderr


def test_bash_completes_names_and_flags(tmp_path):
    program = tmp_path / "tfnlp"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m recipes.shell.tfnlp_command "$@"\n')
    program.chmod(0o755)
    script = f"""PATH={tmp_path}:$PATH; eval "$(tfnlp --completion)"
complete_words() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tfnlp 2>/dev/null
echo "${{COMPREPLY[@]}}"; }}
complete_words tfnlp finetune_c
complete_words tfnlp predict --num"""
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.split("\n")[:2] == [
        "finetune_classifier finetune_chooser",
        "--num_threads=",
    ]
