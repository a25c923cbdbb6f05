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
names = {{*flags}} - before
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
    assert done.stdout.startswith(
        ast.get_docstring(ast.parse(source), clean=False).strip() + "\n\n"
    )
    assert f"python -m recipes.{recipe}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    if required:
        done = run(recipe)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("Error: --") and line.endswith(
            " must be given; --help explains them."
        )
        assert set(re.findall(r"--(\w+)", line)) == required | {"help"}


def test_help_by_its_other_names_says_groups_bounds_choices_and_defaults():
    texts = [run("distill_classifier", flag).stdout for flag in ("--help", "-h", "--helpshort")]
    assert texts[0] == texts[1] == texts[2]
    text = " ".join(texts[0].split())
    titles = ("Required:", "Distillation:", "Training:", "Score:", "Data:")
    assert sorted(titles, key=text.index) == list(titles)
    for shown in (
        "Longest input in tokens; the rest is cut. [a whole number, 3 or more; default: 128]",
        "[a number from 0 to 1; default: 0.1]",
        "[one of float32, mixed_bfloat16 or mixed_float16; default: float32]",
        "--[no]initialize Start from the teacher's weights where widths agree. [default: true]",
        "if not given. [values with commas between]",
    ):
        assert shown in text
    short, full = (run("finetune_classifier", f"--{name}").stdout for name in ("help", "help_all"))
    rare = {*re.findall(r"^  --(?:\[no\])?(\w+)  ", full, re.M)}
    rare -= {*re.findall(r"^  --(?:\[no\])?(\w+)  ", short, re.M)}
    assert {"beta_1", "xla", "word_ngrams"} < rare and "learning_rate" not in rare
    assert f"--help-all lists {len(rare)} more, which few need;" in short
    full = run("distill_classifier", "--helpfull")
    assert "--warmup_share" in full.stdout and "--[no]logtostderr" in full.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--trian=a"], "There is no flag --trian; did you mean --train?"),
        (["--train"], "--train needs a value, as in --train=VALUE."),
        (["--max_length=1"], "--max_length=1 must be a whole number, 3 or more."),
        (["--precision=half"], "--precision=half must be one of float32, mixed_bfloat16 or"),
        (["--initialize=perhaps"], "--initialize=perhaps must be true or false."),
        (["--train=", "--dev=b", "--output_dir=c"], "--teacher_dir and --train must be given;"),
        (["some", "--temperature=inf"], "'some' is no flag: flags begin with --, and"),
        (["--temperature=inf"], "--temperature=inf must be a number, 0.001 or more."),
    ],
)
def test_a_wrong_command_line_is_one_sentence(given, said):
    needed = [f"--{name}=a" for name in ("train", "dev", "teacher_dir", "output_dir")]
    done = run("distill_classifier", *(given if "--train=" in given else [*needed, *given]))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {said}")
