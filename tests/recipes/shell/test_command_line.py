"""The recipes' `--help`, and what they say of a command line that is wrong."""

import ast
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
RECIPES = sorted({path.stem for path in (ROOT / "recipes").glob("*.py")} - {"__init__"})


def run(recipe, *flags):
    return subprocess.run(
        [sys.executable, "-m", f"recipes.{recipe}", *flags],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


# Flags are defined once a process; what all recipes import is loaded before.
CODE = """
import contextlib, io, json, os, runpy, sys, absl.app, absl.flags, absl.logging
from recipes.flags import distillation_flags, model_flags, objective_flags, training_flags
from tfnlp.tasks import classification, multi_label
flags = absl.flags.FLAGS
others = {*flags, "help", "helpshort", "h", "?", "help-all", "help_all", "helpfull", "helpxml"}
for recipe, *words in json.load(sys.stdin):
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    sys.argv, said = [f"{recipe}.py", *words], [io.StringIO(), io.StringIO()]
    with contextlib.redirect_stdout(said[0]), contextlib.redirect_stderr(said[1]):
        try:
            runpy.run_module(f"recipes.{recipe}", run_name="__main__", alter_sys=True)
        except SystemExit as e:
            status = e.code or 0
    names = [n for n in {*flags} - others if not flags[n].help.startswith("Alias for")]
    checks = {n: [v for v in flags[n].validators if not hasattr(v, "flag_names")] for n in names}
    required = [n for n in names if not all(v.checker(None) for v in checks[n])]
    print(json.dumps([status, *(x.getvalue() for x in said), names, required]), flush=True)
    os._exit(0)
"""


def started(calls):
    """Yield (status, output, errors, flags, required flags) of [recipe, word, ...] each."""
    command = [sys.executable, "-c", CODE]
    yield from map(
        json.loads,
        subprocess.check_output(
            command, input=json.dumps(calls), text=True, cwd=ROOT
        ).splitlines(),
    )


def test_help_shows_all_flags_of_each_recipe_and_no_others():
    needs = {}
    helps = started([[recipe, "--help-all"] for recipe in RECIPES])
    for recipe, (status, text, errors, names, required) in zip(RECIPES, helps, strict=True):
        assert (status, errors) == (0, ""), recipe
        shown = re.findall(r"^  --(?:\[no\])?(\w+)  ", text, re.M)
        assert sorted(shown) == sorted(names), recipe
        assert {*shown[: len(required)]} == {*required}
        assert ("\nRequired:\n" in text) == bool(required)
        assert not re.search("^.* flags:$", text, re.M)  # titles of modules
        source = (ROOT / "recipes" / f"{recipe}.py").read_text()
        purpose = ast.get_docstring(ast.parse(source), clean=False).strip()
        assert text.startswith(f"{purpose}\n\n") and f"python -m recipes.{recipe}" in text
        assert max(map(len, text.splitlines())) <= 100
        needs |= {recipe: {*required, "help"}} if required else {}
    for needed, (status, text, errors, *_) in zip(
        needs.values(), started([[recipe] for recipe in needs]), strict=True
    ):
        assert (status, text, errors.count("\n")) == (2, "", 1)
        assert errors.startswith("Error: --") and "must be given" in errors
        assert {*re.findall(r"--(\w+)", errors)} == needed


def test_help_by_its_other_names_says_groups_bounds_choices_and_defaults():
    texts = [run("distill_classifier", flag).stdout for flag in ("--help", "-h", "--helpshort")]
    assert texts[0] == texts[1] == texts[2]
    text = " ".join(texts[0].split())
    titles = ("Required:", "Distillation:", "Training:", "Score:", "Data:")
    assert sorted(titles, key=text.index) == list(titles)
    for shown in (
        "[a whole number, 3 or more; default: 128]",
        "or mixed_float16; default: float32]",
    ):
        assert shown in text
    short, full = (run("finetune_classifier", f"--{name}").stdout for name in ("help", "help_all"))
    flags = re.compile(r"^  --(?:\[no\])?(\w+)  ", re.M)
    rare = {*flags.findall(full)} - {*flags.findall(short)}
    assert {"beta_1", "xla", "word_ngrams"} < rare and "learning_rate" not in rare
    assert f"--help-all lists {len(rare)} more" in short
    assert "--[no]logtostderr" in run("distill_classifier", "--helpfull").stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--trian=a"], "There is no flag --trian; did you mean --train?"),
        (["--fp16"], "There is no flag --fp16; did you mean --precision?"),
        (["--gpus=2"], "There is no flag --gpus; did you mean --strategy?"),
        (["--max-seq-length=9"], "There is no flag --max-seq-length; did you mean --max_length?"),
        (["--train"], "--train needs a value"),
        (["--max_length=1"], "--max_length=1 must be a whole number, 3 or more."),
        (["--precision=half"], "--precision=half must be one of"),
        (["--initialize=perhaps"], "--initialize=perhaps must be true or false."),
        (["--train=", "--teacher_dir="], "--teacher_dir and --train must be given;"),
        (["some", "--temperature=inf"], "'some' is no flag"),
        (["--temperature=inf"], "--temperature=inf must be a number"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(given, said):
    needed = [f"--{name}=a" for name in ("train", "dev", "teacher_dir", "output_dir")]
    done = run("distill_classifier", *needed, *given)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {said}")
