"""The recipes' `--help`, and what they say of a command line that is wrong."""

import ast
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


def defined(recipe):
    """Return the flags that importing a recipe defines: all, and those that must be given."""
    code = f"""
import absl.app, absl.flags, absl.logging
flags, before = absl.flags.FLAGS, set(absl.flags.FLAGS)
import recipes.{recipe}
names = {{n for n in {{*flags}} - before if not flags[n].help.startswith("Alias for")}}
print(*names)
checks = {{n: [v for v in flags[n].validators if not hasattr(v, "flag_names")] for n in names}}
print(*(n for n in names if not all(v.checker(None) for v in checks[n])))
"""
    lines = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT)
    return tuple(set(line.split()) for line in lines.split("\n")[:2])


@pytest.mark.parametrize("recipe", RECIPES)
def test_help_shows_all_flags_of_the_recipes_and_no_others(recipe):
    done = run(recipe, "--help-all")
    assert (done.returncode, done.stderr) == (0, "")
    shown = re.findall(r"^  --(?:\[no\])?(\w+)  ", done.stdout, re.M)
    expected, required = defined(recipe)
    assert sorted(shown) == sorted(expected)
    assert set(shown[: len(required)]) == required
    assert ("\nRequired:\n" in done.stdout) == bool(required)
    assert not re.search("^.* flags:$", done.stdout, re.M)  # titles of modules
    source = (ROOT / "recipes" / f"{recipe}.py").read_text()
    purpose = ast.get_docstring(ast.parse(source), clean=False).strip()
    assert done.stdout.startswith(f"{purpose}\n\n")
    assert f"python -m recipes.{recipe}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    if required:
        done = run(recipe)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("Error: --") and "must be given" in line
        assert set(re.findall(r"--(\w+)", line)) == required | {"help"}


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
